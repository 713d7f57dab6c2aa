package replay

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// kinds are what determines how policies are read.
type kinds struct {
	profiles    *policykind.Profiles
	definitions map[string]*definition // by name
	// policies are the policy kinds. A kind that did not change keeps its pointer.
	policies map[api.PolicyKind]*policykind.Kind
}

// definition is a CustomResourceDefinition.
type definition struct {
	crd    *apiextensionsv1.CustomResourceDefinition
	kind   api.PolicyKind
	schema *policykind.Schema // of the version that is read
	served bool
}

// profilesDefinition is the name of the definition of PolicyProfiles.
const profilesDefinition = "policyprofiles." + api.Group

func newKinds() (kinds, error) {
	profiles, err := policykind.NewProfiles()
	if err != nil {
		return kinds{}, fmt.Errorf("read the built-in profiles: %w", err)
	}
	return kinds{profiles: profiles, definitions: make(map[string]*definition)}, nil
}

// affects reports whether objects of a kind determine how policies are read.
func affects(kind api.PolicyKind) bool {
	return kind == policykind.KindProfile || kind == policykind.KindDefinition
}

// clone returns a copy to which writes can be applied.
func (k kinds) clone() kinds {
	return kinds{k.profiles.Clone(), maps.Clone(k.definitions), k.policies}
}

// put applies the write of a PolicyProfile or a CustomResourceDefinition.
func (k *kinds) put(o snapshot.Object) error {
	switch o := o.(type) {
	case *policykind.Profile:
		_ = k.profiles.Put(&o.PolicyProfile, merge.Newest) // an invalid one is not in force
	case *policykind.Definition:
		k.definitions[o.Name] = newDefinition(&o.CustomResourceDefinition)
		return k.resetProfiles()
	}
	return nil
}

// remove applies the deletion of a PolicyProfile or a CustomResourceDefinition.
func (k *kinds) remove(ref api.Ref) error {
	if ref.PolicyKind() == policykind.KindProfile {
		k.profiles.Remove(ref.Name)
		return nil
	}
	delete(k.definitions, ref.Name)
	return k.resetProfiles()
}

// resetProfiles removes all PolicyProfiles if their kind is not served.
func (k *kinds) resetProfiles() (err error) {
	if d := k.definitions[profilesDefinition]; d == nil || !d.served {
		k.profiles, err = policykind.NewProfiles()
	}
	return err
}

// resolve computes the policy kinds after writes.
func (k *kinds) resolve() error {
	earlier := k.policies
	k.policies = make(map[api.PolicyKind]*policykind.Kind)
	for _, name := range slices.Sorted(maps.Keys(k.definitions)) {
		d := k.definitions[name]
		if !d.served || gateway.Known(d.kind) || constraint.IsKind(d.kind) || affects(d.kind) {
			continue
		}
		kind, err := k.profiles.Defined(d.crd)
		if err != nil {
			return fmt.Errorf("read %s: %w", d.kind, err)
		}
		if kind == nil {
			continue
		}
		kind = kind.WithSchema(d.schema)
		if old := earlier[d.kind]; old != nil && sameKind(old, kind) {
			kind = old
		}
		k.policies[d.kind] = kind
	}
	return nil
}

func sameKind(a, b *policykind.Kind) bool {
	return a.Source == b.Source && a.Name == b.Name && a.Schema().Same(b.Schema()) && reflect.DeepEqual(a.PolicyProfileSpec, b.PolicyProfileSpec)
}

// changed returns the policy kinds that are read differently than earlier, sorted.
func (k kinds) changed(earlier kinds) []*policykind.Kind {
	var out []*policykind.Kind
	for _, ref := range slices.SortedFunc(maps.Keys(k.policies), api.ComparePolicyKinds) {
		if k.policies[ref] != earlier.policies[ref] {
			out = append(out, k.policies[ref])
		}
	}
	return out
}

// dropped returns the kinds of other objects that were served earlier and are not any
// more.
func (k kinds) dropped(earlier kinds) []api.PolicyKind {
	var out []api.PolicyKind
	for name, d := range earlier.definitions {
		now := k.definitions[name]
		if (gateway.Known(d.kind) || constraint.IsKind(d.kind)) && d.served && (now == nil || !now.served) {
			out = append(out, d.kind)
		}
	}
	return out
}

func newDefinition(crd *apiextensionsv1.CustomResourceDefinition) *definition {
	d := &definition{crd: crd, kind: api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}}
	established := slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
	for _, v := range crd.Spec.Versions {
		if !established || !v.Served || d.served && !v.Storage {
			continue
		}
		d.served = true
		if v.Schema != nil {
			d.schema = policykind.PackSchema(v.Schema.OpenAPIV3Schema)
		}
	}
	return d
}
