package manifest

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// setProfile is a PolicyProfile of the manifests.
type setProfile struct {
	profile *policykind.Profile
	created int64
}

// AddProfile adds a PolicyProfile, which takes effect for its kind unless an older
// one does. created, in seconds since 1970, is the creation time of a profile
// without one, or of any profile with resetCreation; an update keeps the time of
// the known profile.
//
// Unknown fields are errors: a profile that is understood only in part would
// misread policies.
func (k *Kinds) AddProfile(o *Object, created int64, resetCreation bool) error {
	p, err := o.profile()
	if err != nil {
		return err
	}
	if resetCreation {
		p.CreationTimestamp = metav1.Time{}
		if old, ok := k.setProfiles[o.Name]; ok {
			created = old.created
		}
	}
	if !p.CreationTimestamp.IsZero() {
		created = p.CreationTimestamp.Unix()
	}
	k.RemoveProfile(o.Name) // it may be of another kind now
	if err := k.profiles.Put(p, created); err != nil {
		return o.At.errorf("%s is invalid: %w", o, err)
	}
	k.setProfiles[o.Name] = setProfile{&policykind.Profile{PolicyProfile: *p}, created}
	return nil
}

func (o *Object) profile() (*api.PolicyProfile, error) {
	if o.Name == "" {
		return nil, o.At.errorf("%s: metadata.name is required", o.Kind.Kind)
	}
	data, err := json.Marshal(o.content)
	if err != nil {
		return nil, o.At.errorf("encode %s as JSON: %w", o, err)
	}
	var p api.PolicyProfile
	if err := unmarshalStrict(data, &p); err != nil {
		return nil, o.At.errorf("%s is invalid: %w; correct the field", o, err)
	}
	return &p, nil
}

// ProfileNamed returns the PolicyProfile of a name, of the manifests or the cluster;
// nil if there is none, or that of the cluster is not in effect.
func (k *Kinds) ProfileNamed(name string) *policykind.Profile {
	if w, ok := k.setProfiles[name]; ok {
		return w.profile
	}
	kind := k.clusterKindOf(name)
	if kind == nil {
		return nil
	}
	p := &policykind.Profile{}
	p.Name, p.Spec = name, kind.PolicyProfileSpec
	return p
}

// RemoveProfile removes a PolicyProfile. The built-in profile of its kind, or the
// one derived from its label, takes effect again.
func (k *Kinds) RemoveProfile(name string) {
	k.profiles.Remove(name)
	delete(k.setProfiles, name)
	if kind := k.clusterKindOf(name); kind != nil {
		delete(k.cluster, kind.Ref())
	}
}

// clusterKindOf returns the kind of a PolicyProfile that is in effect on the
// cluster.
func (k *Kinds) clusterKindOf(name string) *policykind.Kind {
	for _, kind := range k.cluster {
		if kind.Source == policykind.Cluster && kind.Name == name {
			return kind
		}
	}
	return nil
}
