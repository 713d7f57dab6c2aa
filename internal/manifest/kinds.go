package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
)

// KindCRD is the kind of CustomResourceDefinitions.
var KindCRD = api.PolicyKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// Kinds are the policy kinds that are known so far, and what definitions say
// of them.
type Kinds struct {
	profiles *policykind.Profiles
	// guessed and given are kinds beside those of the profiles: by a
	// definition's label, and those of a cluster.
	guessed, given map[api.PolicyKind]*policykind.Kind
	defined        map[api.PolicyKind]definition
}

// definition is what a CRD says beside its label.
type definition struct {
	crd   *apiextensionsv1.CustomResourceDefinition
	names []string
}

// NewKinds returns the given kinds and those that come with Overrule.
func NewKinds(known ...*policykind.Kind) (*Kinds, error) {
	profiles, err := policykind.NewProfiles()
	if err != nil {
		return nil, err
	}
	k := &Kinds{
		profiles: profiles, defined: make(map[api.PolicyKind]definition),
		guessed: make(map[api.PolicyKind]*policykind.Kind), given: make(map[api.PolicyKind]*policykind.Kind),
	}
	for _, kind := range known {
		k.given[kind.Ref()] = kind
	}
	return k, nil
}

// Clone returns a copy that can be added to.
func (k *Kinds) Clone() *Kinds {
	return &Kinds{
		profiles: k.profiles.Clone(), defined: maps.Clone(k.defined),
		guessed: maps.Clone(k.guessed), given: maps.Clone(k.given),
	}
}

// Of returns a policy kind, or nil: by a profile of the set, else as the
// cluster has it, else as it comes with Overrule, else by its label.
func (k *Kinds) Of(ref api.PolicyKind) *policykind.Kind {
	kind := k.profiles.Of(ref)
	given := k.given[ref]
	switch {
	case kind != nil && (given == nil || kind.Source == policykind.Cluster):
		return kind
	case given != nil:
		return given
	default:
		return k.guessed[ref]
	}
}

// All returns the policy kinds, sorted.
func (k *Kinds) All() []*policykind.Kind {
	var out []*policykind.Kind
	refs := make(map[api.PolicyKind]bool)
	for _, kind := range k.profiles.Known() {
		refs[kind.Ref()] = true
	}
	for _, known := range []map[api.PolicyKind]*policykind.Kind{k.given, k.guessed} {
		for ref := range known {
			refs[ref] = true
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(refs), api.ComparePolicyKinds) {
		out = append(out, k.Of(ref))
	}
	return out
}

// Profiles returns the kinds as "profiles" shows them; those that installed
// does not report are not.
func (k *Kinds) Profiles(installed func(api.PolicyKind) bool) []api.ProfileInForce {
	var out []api.ProfileInForce
	for _, kind := range k.All() {
		out = append(out, k.profiles.InForce(kind, installed(kind.Ref())))
	}
	return out
}

// Defined reports whether there is a definition of a kind.
func (k *Kinds) Defined(ref api.PolicyKind) bool { return k.defined[ref].crd != nil }

// Reads reports whether the store holds objects of a kind.
func (k *Kinds) Reads(ref api.PolicyKind) bool {
	return k.Of(ref) != nil || ref == policykind.KindProfile || hierarchy.Known(ref)
}

// ClusterScoped reports whether objects of a kind have no namespace. A policy
// kind has one unless its definition says otherwise.
func (k *Kinds) ClusterScoped(ref api.PolicyKind) bool {
	if crd := k.defined[ref].crd; crd != nil {
		return crd.Spec.Scope == apiextensionsv1.ClusterScoped
	}
	return ref == KindCRD || ref == policykind.KindProfile || hierarchy.ClusterScoped(ref)
}

// Names returns the plural, singular and short names that the definition of a
// kind gives, if there is one.
func (k *Kinds) Names(ref api.PolicyKind) []string { return k.defined[ref].names }

// Define learns from a CustomResourceDefinition. It reports whether that made
// a policy kind known.
func (k *Kinds) Define(o *Object) (added bool, err error) {
	crd, err := o.definition()
	if err != nil {
		return false, err
	}
	ref := api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	names := crd.Spec.Names
	k.defined[ref] = definition{crd: crd, names: append([]string{names.Plural, names.Singular}, names.ShortNames...)}
	was := k.Of(ref)
	kind, err := k.profiles.Defined(crd)
	if err != nil {
		return false, o.At.errorf("%s: %w", o, err)
	}
	if kind != nil && kind.Source == policykind.Label {
		k.guessed[ref] = kind
	}
	return was == nil && kind != nil, nil
}

// Profile learns from a PolicyProfile: the kind is read by it from now on, if
// no older one has it. created stands in for a creation time that the profile
// does not have.
func (k *Kinds) Profile(o *Object, created int64) error {
	decoded, err := o.Decode(k, "", created, false)
	if err != nil {
		return err
	}
	if p, ok := decoded.(*policykind.Profile); ok {
		if err := k.profiles.Put(&p.PolicyProfile, created); err != nil {
			return o.At.errorf("%s: %w", o, err)
		}
	}
	return nil
}

// Schema returns the schema of a policy kind, as its definition has it for the
// version that is stored; nil without a definition.
func (k *Kinds) Schema(ref api.PolicyKind) *apiextensionsv1.JSONSchemaProps {
	crd := k.defined[ref].crd
	if crd == nil {
		return nil
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// Forget drops the kind of a CustomResourceDefinition.
func (k *Kinds) Forget(o *Object) error {
	crd, err := o.definition()
	if err != nil {
		return err
	}
	ref := api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	delete(k.guessed, ref)
	delete(k.given, ref)
	delete(k.defined, ref)
	return nil
}

func (o *Object) definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := json.Marshal(o.content)
	if err != nil {
		return nil, o.At.errorf("write %s as JSON: %w", o, err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &crd); err != nil {
		return nil, o.At.errorf("%s does not fit its kind: %w; correct the field", o, err)
	}
	if crd.Spec.Group == "" || crd.Spec.Names.Kind == "" {
		return nil, o.At.errorf("%s: %w", o, fmt.Errorf("spec.group and spec.names.kind must be set"))
	}
	return &crd, nil
}
