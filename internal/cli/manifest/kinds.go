package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// KindCRD is the kind CustomResourceDefinition.
var KindCRD = api.PolicyKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// Kinds are the known policy kinds and CustomResourceDefinitions: built-in ones,
// those of a cluster, and those of manifests. They are not safe for concurrent use.
type Kinds struct {
	profiles *policykind.Profiles
	// cluster are the policy kinds of a cluster.
	cluster     map[api.PolicyKind]*policykind.Kind
	defined     map[api.PolicyKind]definition
	setProfiles map[string]setProfile // PolicyProfiles of the manifests, by name
	// deleted are the kinds whose definitions were deleted.
	deleted map[api.PolicyKind]bool
	// withSchema caches the kinds with the schemas of their definitions.
	withSchema map[api.PolicyKind]schemaKind
}

// definition is a CustomResourceDefinition.
type definition struct {
	from      *Object
	crd       *apiextensionsv1.CustomResourceDefinition
	names     []string
	labelKind *policykind.Kind // by its label, or nil
	schema    *policykind.Schema
	validator *customresource.Kind
}

// schemaKind is a kind without and with the schema of its definition. It is cached
// because views and policies compare kinds by their pointer.
type schemaKind struct{ plain, kind *policykind.Kind }

// NewKinds returns the built-in kinds and those of a cluster, if any.
func NewKinds(known ...*policykind.Kind) (*Kinds, error) {
	profiles, err := policykind.NewProfiles()
	if err != nil {
		return nil, err
	}
	k := &Kinds{
		profiles: profiles, defined: make(map[api.PolicyKind]definition),
		cluster: make(map[api.PolicyKind]*policykind.Kind), deleted: make(map[api.PolicyKind]bool),
		setProfiles: make(map[string]setProfile), withSchema: make(map[api.PolicyKind]schemaKind),
	}
	for _, kind := range known {
		k.cluster[kind.Ref()] = kind
	}
	return k, nil
}

// Clone returns a copy that can be changed independently.
func (k *Kinds) Clone() *Kinds {
	return &Kinds{
		profiles: k.profiles.Clone(), defined: maps.Clone(k.defined),
		cluster: maps.Clone(k.cluster), deleted: maps.Clone(k.deleted), setProfiles: maps.Clone(k.setProfiles),
		withSchema: maps.Clone(k.withSchema),
	}
}

// Of returns a policy kind, or nil if the kind is none. Its profile is, in order of
// precedence, a PolicyProfile of the cluster, one of the manifests, that of the
// cluster without a PolicyProfile, the built-in one, or the one derived from the
// label of its definition. The kind has the schema of its definition, if there is
// one.
func (k *Kinds) Of(ref api.PolicyKind) *policykind.Kind {
	plain, schema := k.withoutSchema(ref), k.defined[ref].schema
	if plain == nil || schema == nil || plain.Schema().Same(schema) {
		return plain
	}
	cached := k.withSchema[ref]
	if cached.plain != plain || cached.kind.Schema() != schema {
		cached = schemaKind{plain, plain.WithSchema(schema)}
		k.withSchema[ref] = cached
	}
	return cached.kind
}

func (k *Kinds) withoutSchema(ref api.PolicyKind) *policykind.Kind {
	profile, clusterKind := k.profiles.Of(ref), k.cluster[ref]
	switch {
	case k.deleted[ref]:
		return nil
	case clusterKind != nil && (clusterKind.Source == policykind.Cluster || profile == nil || profile.Source != policykind.Cluster):
		return clusterKind
	case profile != nil:
		return profile
	default:
		return k.defined[ref].labelKind
	}
}

// All returns the policy kinds, sorted.
func (k *Kinds) All() []*policykind.Kind {
	refs := make(map[api.PolicyKind]bool)
	for _, kind := range k.profiles.Known() {
		refs[kind.Ref()] = true
	}
	for ref := range k.cluster {
		refs[ref] = true
	}
	for ref := range k.defined {
		refs[ref] = true
	}
	var out []*policykind.Kind
	for _, ref := range slices.SortedFunc(maps.Keys(refs), api.ComparePolicyKinds) {
		if kind := k.Of(ref); kind != nil {
			out = append(out, kind)
		}
	}
	return out
}

// Profiles returns the profiles in effect, sorted by kind. A kind is installed if
// it has a definition.
func (k *Kinds) Profiles() []api.ProfileInForce {
	var out []api.ProfileInForce
	for _, kind := range k.All() {
		out = append(out, k.profiles.InForce(kind, k.Defined(kind.Ref())))
	}
	return out
}

// Refused returns the PolicyProfiles of the manifests that are not in effect because
// an older one has their kind, sorted by kind, then by age, the oldest first.
func (k *Kinds) Refused() []api.RefusedProfile {
	var out []api.RefusedProfile
	for _, kind := range k.All() {
		out = append(out, k.profiles.Refused(kind.Ref())...)
		clusterKind, profile := k.cluster[kind.Ref()], k.profiles.Of(kind.Ref())
		if clusterKind != nil && clusterKind.Source == policykind.Cluster && profile != nil && profile.Source == policykind.Cluster {
			out = append(out, api.RefusedProfile{
				Name: profile.Name, Reason: api.Conflicted,
				Message: fmt.Sprintf("PolicyProfile %s of the cluster, which is older, is in force for %s: delete one of the two", clusterKind.Name, kind.Ref()),
			})
		}
	}
	return out
}

// Defined reports whether there is a definition of a kind.
func (k *Kinds) Defined(ref api.PolicyKind) bool { return k.defined[ref].crd != nil }

// Reads reports whether objects of a kind are read: the snapshot holds them, or
// they are PolicyProfiles.
func (k *Kinds) Reads(ref api.PolicyKind) bool {
	return k.Of(ref) != nil || ref == policykind.KindProfile || gateway.Known(ref) || constraint.IsKind(ref)
}

// ClusterScoped reports whether a kind is cluster-scoped. A policy kind is
// namespaced unless its definition says otherwise.
func (k *Kinds) ClusterScoped(ref api.PolicyKind) bool {
	if crd := k.defined[ref].crd; crd != nil {
		return crd.Spec.Scope == apiextensionsv1.ClusterScoped
	}
	return ref == KindCRD || ref == policykind.KindProfile || ref == constraint.ClusterKind || gateway.ClusterScoped(ref)
}

// Names returns the plural, singular and short names of a kind from its definition,
// nil if it has none.
func (k *Kinds) Names(ref api.PolicyKind) []string { return k.defined[ref].names }

// AddDefinition adds a CustomResourceDefinition. With the label of policy kinds,
// its kind becomes a policy kind unless it has a profile.
func (k *Kinds) AddDefinition(o *Object) error {
	parsed, err := o.definition()
	if err != nil {
		return err
	}
	names := parsed.Spec.Names
	ref := api.PolicyKind{Group: parsed.Spec.Group, Kind: names.Kind}
	if k.defined[ref].from == o {
		return nil
	}
	d := definition{
		from: o, crd: parsed, validator: customresource.New(parsed),
		names: append([]string{names.Plural, names.Singular}, names.ShortNames...),
	}
	if d.labelKind, err = k.labelKind(ref, parsed); err != nil {
		return o.At.errorf("%s: derive a profile from the label %s: %w", o, policykind.LabelPolicy, err)
	}
	if clusterKind := k.cluster[ref]; clusterKind != nil && clusterKind.Source == policykind.Label {
		delete(k.cluster, ref)
	}
	if d.schema = policykind.PackSchema(SchemaOf(parsed)); d.schema.Same(k.defined[ref].schema) {
		d.schema = k.defined[ref].schema
	}
	k.defined[ref] = d
	delete(k.deleted, ref)
	return nil
}

// labelKind returns the kind derived from the label of a definition, nil if it has
// no label. If an equal kind is known by its label already, it is that one.
func (k *Kinds) labelKind(ref api.PolicyKind, crd *apiextensionsv1.CustomResourceDefinition) (*policykind.Kind, error) {
	spec, ok := policykind.FromLabel(crd)
	if !ok {
		return nil, nil
	}
	kind, err := policykind.Compile(spec, policykind.Label)
	if err != nil {
		return nil, err
	}
	for _, old := range []*policykind.Kind{k.cluster[ref], k.defined[ref].labelKind} {
		if old != nil && old.Source == policykind.Label && reflect.DeepEqual(old.PolicyProfileSpec, kind.PolicyProfileSpec) {
			return old, nil
		}
	}
	return kind, nil
}

// RemoveDefinition removes the kind of a CustomResourceDefinition, so that its
// objects are no longer policies.
func (k *Kinds) RemoveDefinition(o *Object) error {
	crd, err := o.definition()
	if err != nil {
		return err
	}
	ref := api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	delete(k.cluster, ref)
	delete(k.defined, ref)
	k.deleted[ref] = true
	return nil
}

// Schema returns the schema of a policy kind from the storage version of its
// definition; nil without a definition.
func (k *Kinds) Schema(ref api.PolicyKind) *apiextensionsv1.JSONSchemaProps {
	return SchemaOf(k.defined[ref].crd)
}

// SchemaOf returns the schema of the storage version of a definition, nil if it has
// none or crd is nil.
func SchemaOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
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

func (o *Object) definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := json.Marshal(o.content)
	if err != nil {
		return nil, o.At.errorf("encode %s as JSON: %w", o, err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &crd); err != nil {
		return nil, o.At.errorf("%s is invalid: %w; correct the field", o, err)
	}
	if crd.Spec.Group == "" || crd.Spec.Names.Kind == "" {
		return nil, o.At.errorf("%s: %w", o, fmt.Errorf("spec.group and spec.names.kind are required"))
	}
	return &crd, nil
}
