package manifest

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// written is a PolicyProfile of the set.
type setProfile struct {
	profile *policykind.Profile
	created int64
}

// Profile learns from a PolicyProfile: its kind is read by it from now on, if
// no older one has it. created, in seconds since 1970, stands in for a creation
// time that the profile does not have; forget takes the one that it has away,
// and that of a profile which is known already stays.
//
// A profile is held to its schema, names of fields included: one that is
// understood in part reads policies wrong.
func (k *Kinds) AddProfile(o *Object, created int64, forget bool) error {
	p, err := o.profile()
	if err != nil {
		return err
	}
	if forget {
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
		return o.At.errorf("%s cannot be used: %w", o, err)
	}
	k.setProfiles[o.Name] = setProfile{&policykind.Profile{PolicyProfile: *p}, created}
	return nil
}

func (o *Object) profile() (*api.PolicyProfile, error) {
	if o.Name == "" {
		return nil, o.At.errorf("%s has no metadata.name; give it one", o.Kind.Kind)
	}
	data, err := json.Marshal(o.content)
	if err != nil {
		return nil, o.At.errorf("write %s as JSON: %w", o, err)
	}
	var p api.PolicyProfile
	if err := unmarshalStrict(data, &p); err != nil {
		return nil, o.At.errorf("%s does not fit its kind: %w; correct the field", o, err)
	}
	return &p, nil
}

// Written returns the PolicyProfile of that name, of the set or the cluster;
// nil if there is none, or it is not in force.
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

// RemoveProfile drops a PolicyProfile: its kind is read again as it comes with
// Overrule, or by its label.
func (k *Kinds) RemoveProfile(name string) {
	k.profiles.Remove(name)
	delete(k.setProfiles, name)
	if kind := k.clusterKindOf(name); kind != nil {
		delete(k.cluster, kind.Ref())
	}
}

// givenBy returns the kind that the cluster reads by the profile of that name.
func (k *Kinds) clusterKindOf(name string) *policykind.Kind {
	for _, kind := range k.cluster {
		if kind.Source == policykind.Cluster && kind.Name == name {
			return kind
		}
	}
	return nil
}
