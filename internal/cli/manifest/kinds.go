package manifest

import (
	"encoding/json"
	"errors"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// KindCRD is the kind CustomResourceDefinition.
var KindCRD = policykind.KindDefinition

// Kinds are the known kinds: built-in ones, those of a cluster, and those of manifests. They are
// not safe for concurrent use.
type Kinds struct {
	*snapshot.Kinds
	// definitions of the manifests, by name.
	definitions map[string]definition
	// profiles are the names of the PolicyProfiles of the manifests.
	profiles map[string]bool
}

// definition is a CustomResourceDefinition of the manifests.
type definition struct {
	*policykind.Definition
	from      *Object
	validator *customresource.Kind
}

// NewKinds returns the kinds of a cluster, or the built-in ones for nil.
func NewKinds(cluster *snapshot.Kinds) *Kinds {
	if cluster == nil {
		cluster = snapshot.NewKinds()
	}
	return &Kinds{Kinds: cluster.ForManifests(), definitions: make(map[string]definition), profiles: make(map[string]bool)}
}

// Clone returns a copy that can be changed independently.
func (k *Kinds) Clone() *Kinds {
	return &Kinds{Kinds: k.Kinds, definitions: maps.Clone(k.definitions), profiles: maps.Clone(k.profiles)}
}

// Rejected returns the PolicyProfiles of the manifests that are not in effect, sorted by kind, then
// by age, the oldest first.
func (k *Kinds) Rejected() []api.RefusedProfile {
	var out []api.RefusedProfile
	for _, kind := range k.All() {
		for _, r := range k.Refused(kind.Ref()) {
			if k.profiles[r.Name] {
				out = append(out, r)
			}
		}
	}
	return out
}

// definitionOf returns the definition of a kind in the manifests, zero if there is none.
func (k *Kinds) definitionOf(ref api.PolicyKind) definition {
	if d := k.DefinitionOf(ref); d != nil {
		return k.definitions[d.Name]
	}
	return definition{}
}

// Defined reports whether the manifests have a definition of a kind.
func (k *Kinds) Defined(ref api.PolicyKind) bool { return k.definitionOf(ref).Definition != nil }

// Definition returns a definition of the manifests, nil if there is none of the name.
func (k *Kinds) Definition(name string) *policykind.Definition { return k.definitions[name].Definition }

// notServed reports whether a kind was deleted, or is not served any more.
func (k *Kinds) notServed(ref api.PolicyKind) bool {
	d := k.DefinitionOf(ref)
	return d != nil && !d.Served()
}

// Reads reports whether objects of a kind are read: the snapshot holds them, or
// they are PolicyProfiles.
func (k *Kinds) Reads(ref api.PolicyKind) bool {
	return k.Of(ref) != nil || ref == policykind.KindProfile || gateway.Known(ref) || constraint.IsKind(ref) || k.Selectable(ref)
}

// ClusterScoped reports whether a kind is cluster-scoped. A policy kind is
// namespaced unless its definition, or its profile, says otherwise.
func (k *Kinds) ClusterScoped(ref api.PolicyKind) bool {
	if d := k.DefinitionOf(ref); d != nil {
		return !d.Namespaced
	}
	if p := k.Of(ref); p != nil && p.Attachment.InsteadOf != "" {
		return true
	}
	return ref == KindCRD || ref == policykind.KindProfile || ref == constraint.ClusterKind || gateway.ClusterScoped(ref)
}

// Names returns the plural, singular and short names of a kind from its definition,
// nil if it has none.
func (k *Kinds) Names(ref api.PolicyKind) []string {
	d := k.definitionOf(ref)
	if d.Definition == nil {
		return nil
	}
	return append([]string{d.Spec.Names.Plural, d.Spec.Names.Singular}, d.Spec.Names.ShortNames...)
}

// AddDefinition adds a CustomResourceDefinition. With the label of policy kinds, its kind becomes a
// policy kind unless it has a profile. Of two definitions of a kind, the first one that is added is
// used.
func (k *Kinds) AddDefinition(o *Object) error {
	d, err := o.Definition()
	if err != nil || k.definitions[d.Name].from == o {
		return err
	}
	if first := k.DefinitionOf(d.Defines()); first == nil || first.Name == d.Name {
		d.Created = merge.Undated
	}
	next := k.With(snapshot.Put(d))
	if d := next.DefinitionNamed(d.Name); d.Served() && !d.Fixed && d.Err != nil {
		return o.At.errorf("%s: %w", o, d.Err)
	}
	k.Kinds = next
	k.definitions[d.Name] = definition{d, o, customresource.New(&d.CustomResourceDefinition)}
	return nil
}

// RemoveDefinition removes the kind of a CustomResourceDefinition, so that its
// objects are no longer policies.
func (k *Kinds) RemoveDefinition(o *Object) error {
	d, err := o.Definition()
	if err != nil {
		return err
	}
	k.Kinds = k.With(snapshot.Put(d), snapshot.Delete(d.Ref()))
	delete(k.definitions, d.Name)
	return nil
}

// AddProfile adds a PolicyProfile, which takes effect for its kind unless an older
// one does. created, in seconds since 1970, is the creation time of a profile
// without one, or of any profile with resetCreation; an update keeps the time of
// the known profile.
//
// Unknown fields are errors: a profile that is understood only in part would
// misread policies.
func (k *Kinds) AddProfile(o *Object, created int64, resetCreation bool) error {
	if o.Name == "" {
		return o.At.errorf("%s: metadata.name is required", o.Kind.Kind)
	}
	p := new(policykind.Profile)
	if err := o.decode(o.content, func(data []byte) error { return unmarshalStrict(data, &p.PolicyProfile) }); err != nil {
		return err
	}
	p.Created = created
	if resetCreation {
		p.CreationTimestamp = metav1.Time{}
		if old := k.Profile(o.Name); old != nil {
			p.CreationTimestamp, p.Created = old.CreationTimestamp, old.Created
		}
	}
	k.Kinds = k.With(snapshot.Put(p))
	k.profiles[p.Name] = true
	if _, err := p.Compile(); err != nil {
		return o.At.errorf("%s is invalid: %w", o, err)
	}
	return nil
}

// Definition decodes a CustomResourceDefinition.
func (o *Object) Definition() (*policykind.Definition, error) {
	d := new(policykind.Definition)
	err := o.decode(o.content, func(data []byte) error { return json.Unmarshal(data, &d.CustomResourceDefinition) })
	if err != nil {
		return nil, err
	}
	if d.Spec.Group == "" || d.Spec.Names.Kind == "" {
		return nil, o.At.errorf("%s: %w", o, errors.New("spec.group and spec.names.kind are required"))
	}
	return d, nil
}
