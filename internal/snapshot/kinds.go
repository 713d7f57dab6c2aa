package snapshot

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// Kinds are CustomResourceDefinitions and PolicyProfiles, and the policy kinds that these make.
// They are immutable.
//
// A kind is read by the oldest valid PolicyProfile, else by the built-in profile, else by the one
// that is derived from the label of its definition. One that is read as before keeps its
// *policykind.Kind.
type Kinds struct {
	// manifests is set for the kinds of manifests: a definition is served unless it says
	// otherwise, and so is a kind with a profile and without a definition.
	manifests   bool
	definitions map[string]*Definition // by name
	profiles    map[string]*profile    // by name
	active      map[api.PolicyKind]*Definition
	policies    map[api.PolicyKind]*policykind.Kind
	// selectable are the other kinds whose objects policies may select by label, or are read
	// because a profile says so.
	selectable map[api.PolicyKind]bool
}

// profile is a compiled PolicyProfile.
type profile struct {
	*policykind.Profile
	created int64
	kind    *policykind.Kind // nil if it is invalid
	err     error
}

func (p *profile) of() api.PolicyKind { return api.PolicyKind{Group: p.Spec.Group, Kind: p.Spec.Kind} }

// NewKinds returns the kinds of a cluster without definitions and PolicyProfiles.
func NewKinds() *Kinds { return new(Kinds).With() }

// ForManifests returns the kinds for manifests, which rarely have the definitions of their kinds.
func (k *Kinds) ForManifests() *Kinds {
	next := *k
	next.manifests = true
	return next.With()
}

// KindsOf returns kinds for manifests: the given ones, whose definitions are not known, and those
// with a built-in profile.
func KindsOf(given ...*policykind.Kind) *Kinds {
	k := &Kinds{manifests: true, definitions: make(map[string]*Definition), profiles: make(map[string]*profile)}
	known := make(map[api.PolicyKind]*policykind.Kind)
	for _, kind := range given {
		ref := kind.Ref()
		known[ref] = kind
		d := &Definition{Kind: ref, Resource: schema.GroupVersionResource{Group: ref.Group, Version: "v1"}, Namespaced: true, Schema: kind.Schema()}
		k.definitions[unnamed(ref)] = d
		switch kind.Source {
		case policykind.Builtin:
		case policykind.Label:
			d.label = kind
		case policykind.Cluster:
			p := &policykind.Profile{}
			p.Name, p.Spec, p.Created = kind.Name, kind.PolicyProfileSpec, 1
			k.profiles[cmp.Or(kind.Name, unnamed(ref))] = &profile{Profile: p, created: p.Created, kind: kind}
		}
	}
	k.resolve(known)
	return k
}

// unnamed is the key of the definition or profile of a kind whose name is not known.
func unnamed(kind api.PolicyKind) string { return "?" + kind.String() }

// With returns the kinds after changes of PolicyProfiles and definitions: of a
// *policykind.Profile, of a *policykind.Definition, or of a *Definition.
func (k *Kinds) With(changes ...Change) *Kinds {
	next := &Kinds{manifests: k.manifests, definitions: maps.Clone(k.definitions), profiles: maps.Clone(k.profiles)}
	if next.definitions == nil {
		next.definitions, next.profiles = make(map[string]*Definition), make(map[string]*profile)
	}
	for _, c := range changes {
		switch o := c.Object.(type) {
		case *policykind.Profile:
			next.putProfile(o)
		case *policykind.Definition:
			next.define(next.parse(o))
		case *Definition:
			next.define(o)
		case nil:
			next.remove(c.Ref)
		}
	}
	if d := next.definitions[DefinitionName(policykind.KindProfile)]; d == nil && !k.manifests || d != nil && !d.Served() {
		clear(next.profiles)
	}
	next.resolve(k.policies)
	return next
}

func (k *Kinds) putProfile(o *policykind.Profile) {
	p := &profile{Profile: o, created: createdAt(o.CreationTimestamp.Unix(), o.CreationTimestamp.IsZero(), o.Created)}
	p.kind, p.err = o.Compile()
	k.profiles[o.Name] = p
}

func (k *Kinds) parse(o *policykind.Definition) *Definition {
	if k.manifests && len(o.Spec.Versions) == 0 {
		whole, versions := *o, append(slices.Clone(FixedKind(o.Defines()).Versions), "v1")
		whole.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: versions[0], Served: true, Storage: true}}
		o = &whole
	}
	return parseDefinition(o, k.manifests || established(&o.CustomResourceDefinition))
}

func (k *Kinds) define(d *Definition) {
	delete(k.definitions, unnamed(d.Kind))
	k.definitions[d.Name] = d
}

func (k *Kinds) remove(ref api.Ref) {
	switch d := k.definitions[ref.Name]; {
	case ref.PolicyKind() == policykind.KindProfile:
		delete(k.profiles, ref.Name)
	case ref.PolicyKind() != policykind.KindDefinition:
	case d != nil && k.manifests: // from now on it is known that the kind is not installed
		k.definitions[ref.Name] = &Definition{Name: d.Name, Kind: d.Kind, Namespaced: d.Namespaced}
	default:
		delete(k.definitions, ref.Name)
	}
}

// resolve finds the policy kinds. Those that are read as earlier ones are these.
func (k *Kinds) resolve(earlier map[api.PolicyKind]*policykind.Kind) {
	k.active = activeDefinitions(maps.Values(k.definitions))
	k.policies = make(map[api.PolicyKind]*policykind.Kind)
	find := func(ref api.PolicyKind, d *Definition) {
		kind, _ := k.read(ref, d)
		if old := earlier[ref]; old != nil && kind != nil && sameKind(old, kind) {
			kind = old
		}
		if kind != nil {
			k.policies[ref] = kind
		}
	}
	for ref, d := range k.active {
		find(ref, d)
	}
	for _, kind := range k.profiled() {
		if k.manifests && k.active[kind.Ref()] == nil {
			find(kind.Ref(), nil)
		}
	}
	k.selectable = make(map[api.PolicyKind]bool)
	for _, kind := range k.policies {
		for _, t := range kind.Targets.Kinds {
			ref := api.PolicyKind{Group: t.Group, Kind: t.Kind}
			read := t.Objects && k.serves(ref) || len(kind.Targets.Selectors) > 0 && !t.Virtual
			if read && k.policies[ref] == nil && !gateway.Known(ref) {
				k.selectable[ref] = true
			}
		}
	}
}

// serves reports whether a kind is served; without a definition, one of manifests is.
func (k *Kinds) serves(kind api.PolicyKind) bool {
	d := k.active[kind]
	return d == nil && k.manifests || d != nil && d.Served()
}

// Selectable reports whether a kind is none of policies or of Gateway API, and its objects are
// read: policies may select them by label, or a profile says so.
func (k *Kinds) Selectable(kind api.PolicyKind) bool { return k.selectable[kind] }

// read returns the policy kind of a definition, which may be nil for one of manifests.
func (k *Kinds) read(ref api.PolicyKind, d *Definition) (*policykind.Kind, error) {
	switch profiled := k.profileOf(ref); {
	case d == nil:
		return profiled, nil
	case !d.Served() || d.Fixed:
		return nil, d.Err
	case profiled != nil:
		return profiled.WithSchema(d.Schema), nil
	case d.label != nil:
		return d.label.WithSchema(d.Schema), nil
	default:
		return nil, d.Err
	}
}

func sameKind(a, b *policykind.Kind) bool {
	return a == b || a.Source == b.Source && a.Name == b.Name && a.Schema().Same(b.Schema()) && reflect.DeepEqual(a.PolicyProfileSpec, b.PolicyProfileSpec)
}

// Of returns a policy kind, nil if the kind is none or not served.
func (k *Kinds) Of(kind api.PolicyKind) *policykind.Kind { return k.policies[kind] }

// All returns the policy kinds, sorted.
func (k *Kinds) All() []*policykind.Kind { return sorted(slices.Collect(maps.Values(k.policies))) }

func sorted(kinds []*policykind.Kind) []*policykind.Kind {
	slices.SortFunc(kinds, func(a, b *policykind.Kind) int { return api.ComparePolicyKinds(a.Ref(), b.Ref()) })
	return kinds
}

// Definitions returns the definitions, sorted by name.
func (k *Kinds) Definitions() []*Definition {
	return slices.SortedFunc(maps.Values(k.definitions), func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
}

// DefinitionNamed returns the definition of a name, nil if there is none.
func (k *Kinds) DefinitionNamed(name string) *Definition { return k.definitions[name] }

// DefinitionOf returns the definition that is used for a kind, nil if there is none.
func (k *Kinds) DefinitionOf(kind api.PolicyKind) *Definition { return k.active[kind] }

// Policy returns the policy kind that a definition makes, nil if it makes none. The error is why
// it is not read though it should be: a *policykind.DefinedError if another definition is used.
func (k *Kinds) Policy(d *Definition) (*policykind.Kind, error) {
	kind, err := k.read(d.Kind, d)
	if first := k.active[d.Kind]; kind != nil && first != d {
		return nil, &policykind.DefinedError{Kind: d.Kind, By: first.Name}
	}
	if kind == nil {
		return nil, err
	}
	return k.policies[d.Kind], nil
}

// Schema returns the schema of the objects of a kind, nil if it is not defined.
func (k *Kinds) Schema(kind api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	d := k.active[kind]
	if d == nil {
		return nil, nil
	}
	out, err := d.Schema.Props()
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", kind, err)
	}
	return out, nil
}

// candidates returns the PolicyProfiles of a kind, the oldest first.
func (k *Kinds) candidates(kind api.PolicyKind) []*profile {
	var out []*profile
	for _, p := range k.profiles {
		if p.of() == kind {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *profile) int {
		return cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.Name, b.Name))
	})
	return out
}

// profileOf returns a kind by its PolicyProfile or its built-in profile, nil if it has neither.
func (k *Kinds) profileOf(kind api.PolicyKind) *policykind.Kind {
	for _, p := range k.candidates(kind) {
		if p.kind != nil {
			return p.kind
		}
	}
	return policykind.BuiltinKind(kind)
}

// profiled returns the kinds that have a profile, sorted.
func (k *Kinds) profiled() []*policykind.Kind {
	found := make(map[api.PolicyKind]*policykind.Kind)
	for _, kind := range policykind.BuiltinKinds() {
		found[kind.Ref()] = k.profileOf(kind.Ref())
	}
	for _, p := range k.profiles {
		if kind := k.profileOf(p.of()); kind != nil {
			found[kind.Ref()] = kind
		}
	}
	return sorted(slices.Collect(maps.Values(found)))
}

// Profiles yields the PolicyProfiles, in any order.
func (k *Kinds) Profiles() iter.Seq[*policykind.Profile] {
	return func(yield func(*policykind.Profile) bool) {
		for _, p := range k.profiles {
			if !yield(p.Profile) {
				return
			}
		}
	}
}

// Profile returns the PolicyProfile of a name, nil if there is none.
func (k *Kinds) Profile(name string) *policykind.Profile {
	if p := k.profiles[name]; p != nil {
		return p.Profile
	}
	return nil
}

// Refused returns the PolicyProfiles of a kind that are not in force, the oldest first.
func (k *Kinds) Refused(kind api.PolicyKind) []api.RefusedProfile {
	var out []api.RefusedProfile
	inForce := ""
	for _, p := range k.candidates(kind) {
		switch {
		case p.err != nil:
			out = append(out, api.RefusedProfile{Name: p.Name, Reason: api.Invalid, Message: p.err.Error()})
		case inForce != "":
			out = append(out, api.RefusedProfile{
				Name: p.Name, Reason: api.Conflicted,
				Message: fmt.Sprintf("PolicyProfile %s, which is older, is in force for %s: delete one of the two", inForce, kind),
			})
		default:
			inForce = p.Name
		}
	}
	return out
}

// Refusal returns why a PolicyProfile is not in force, nil if it is.
func (k *Kinds) Refusal(p *policykind.Profile) *api.RefusedProfile {
	all := k.Refused(api.PolicyKind{Group: p.Spec.Group, Kind: p.Spec.Kind})
	if i := slices.IndexFunc(all, func(r api.RefusedProfile) bool { return r.Name == p.Name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// InForce returns the kinds with a profile, and those with a label only, sorted.
func (k *Kinds) InForce() []api.ProfileInForce {
	kinds := k.profiled()
	for _, kind := range k.policies {
		if kind.Source == policykind.Label {
			kinds = append(kinds, kind)
		}
	}
	out := make([]api.ProfileInForce, 0, len(kinds))
	for _, kind := range sorted(kinds) {
		d := k.active[kind.Ref()]
		out = append(out, api.ProfileInForce{
			PolicyKind: kind.Ref(), Source: string(kind.Source), Profile: kind.Name, Installed: d != nil && d.Served(),
			Spec: kind.PolicyProfileSpec, Refused: k.Refused(kind.Ref()),
		})
	}
	return out
}
