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
	policies map[api.PolicyKind]*policykind.Kind
	defined  map[api.PolicyKind]definition
}

// definition is what a CRD says beside its label.
type definition struct {
	cluster bool // scope
	names   []string
}

// NewKinds returns the given kinds and those that come with Overrule.
func NewKinds(known ...*policykind.Kind) (*Kinds, error) {
	builtin, err := policykind.BuiltinKinds()
	if err != nil {
		return nil, err
	}
	k := &Kinds{policies: make(map[api.PolicyKind]*policykind.Kind), defined: make(map[api.PolicyKind]definition)}
	for _, kind := range append(builtin, known...) {
		k.policies[kind.Ref()] = kind
	}
	return k, nil
}

// Clone returns a copy that can be added to.
func (k *Kinds) Clone() *Kinds {
	return &Kinds{policies: maps.Clone(k.policies), defined: maps.Clone(k.defined)}
}

// Of returns a policy kind, or nil.
func (k *Kinds) Of(ref api.PolicyKind) *policykind.Kind { return k.policies[ref] }

// All returns the policy kinds, sorted.
func (k *Kinds) All() []*policykind.Kind {
	return slices.SortedFunc(maps.Values(k.policies), func(a, b *policykind.Kind) int {
		return api.ComparePolicyKinds(a.Ref(), b.Ref())
	})
}

// Reads reports whether the store holds objects of a kind.
func (k *Kinds) Reads(ref api.PolicyKind) bool {
	return k.policies[ref] != nil || ref == kindNamespace || slices.Contains(hierarchyKinds, ref)
}

var (
	kindNamespace  = api.PolicyKind{Kind: hierarchy.KindNamespace}
	kindClass      = api.PolicyKind{Group: api.GatewayGroup, Kind: hierarchy.KindGatewayClass}
	hierarchyKinds = HierarchyKinds()
)

// HierarchyKinds returns the kinds of Gateway API that paths are made of.
func HierarchyKinds() []api.PolicyKind {
	out := []api.PolicyKind{kindClass, {Group: api.GatewayGroup, Kind: hierarchy.KindGateway}}
	for _, route := range hierarchy.RouteKinds {
		out = append(out, api.PolicyKind{Group: api.GatewayGroup, Kind: route})
	}
	return out
}

// ClusterScoped reports whether objects of a kind have no namespace. A policy
// kind has one unless its definition says otherwise.
func (k *Kinds) ClusterScoped(ref api.PolicyKind) bool {
	return ref == kindNamespace || ref == kindClass || ref == KindCRD || k.defined[ref].cluster
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
	k.defined[ref] = definition{
		cluster: crd.Spec.Scope == apiextensionsv1.ClusterScoped,
		names:   append([]string{names.Plural, names.Singular}, names.ShortNames...),
	}
	profile, ok := policykind.FromLabel(crd)
	if !ok || k.policies[ref] != nil {
		return false, nil
	}
	kind, err := policykind.Compile(profile, policykind.Label)
	if err != nil {
		return false, o.At.errorf("%s: %w", o, err)
	}
	k.policies[ref] = kind
	return true, nil
}

// Forget drops the kind of a CustomResourceDefinition.
func (k *Kinds) Forget(o *Object) error {
	crd, err := o.definition()
	if err != nil {
		return err
	}
	ref := api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	delete(k.policies, ref)
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
