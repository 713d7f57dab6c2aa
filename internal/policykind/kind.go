package policykind

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Source is where the profile of a kind comes from.
type Source string

// The sources of profiles.
const (
	Builtin Source = "built-in"
	Cluster Source = "cluster" // a PolicyProfile
	Label   Source = "label"   // derived from the label on the CRD
)

// Kind is a compiled profile.
type Kind struct {
	api.PolicyProfileSpec
	Source Source
	// Name of the PolicyProfile, empty for other sources.
	Name string

	rules, wholeMaps []fieldPath
	falseIsUnset     []fieldPath
	gates            []subtree
	alternatives     []subtree
	protection       []protectionGroup
	groups           []ruleGroup
	lists            []keyedList
	binding          fieldPath // of the rules that bind to rules of routes, nil if there are none
	strategies       []merge.Strategy
	spellings        map[string]merge.Strategy
	rulesAreLeaves   bool // the rules are the leaves
	fields           []Field
	root             fieldPath // of field paths in an object: spec, or nil for the object itself
	content          fieldPath
	name, disabled   fieldPath      // of Named, nil if it is not set
	nonContent       []fieldPath    // fields of the root that are not content
	ignored          []fieldPath    // fields of the content that are ignored
	through          merge.Key      // of Attachment.Through.Field
	directedLists    []fieldPath    // of Directions
	direction        fieldPath      // the field of their items
	portItems        fieldPath      // Ports
	ignoredOn        [][]subtree    // the rules of IgnoreOn
	ignoringRoutes   []string       // the kinds of routes in it and in MergeOn
	beside           api.PolicyKind // the other kind in it
	ignoresMerged    bool           // it has Merged
	ignoresListener  bool           // it has Listener or AboveListener
	ignoresUnserved  bool           // it has NoBackends
	paths            []profilePath
	schema           *Schema // nil if unknown
}

// wholeObject is the Content of kinds without spec.
const wholeObject = "."

type keyedList struct {
	path, key fieldPath
	// defaultKey is the key of items without one, "" if each must have one.
	defaultKey string
}

// Field is a field of a route that a rule of the kind controls.
type Field struct {
	Rule  merge.Key
	Kinds []string
	// Route is its path in the route, starting with spec, and Unless that of a field beside
	// which it does not count, nil if there is none.
	Route, Unless []Segment
}

// InItems reports whether the items of a list have the field, each of which has a path of
// its own.
func (f Field) InItems() bool { return listOf(f.Route) != "" }

// Segment is a segment of the path of a field.
type Segment struct {
	Name string
	// List is set if the field is a list and the path selects each item.
	List bool
}

// Ref returns the group and kind.
func (k *Kind) Ref() api.PolicyKind { return api.PolicyKind{Group: k.Group, Kind: k.Kind} }

// guessed are the reasons that depend on how policies are read. They are no reason to
// deny where that is a guess by the label of the kind (SEMANTICS section 5).
var guessed = []api.ReasonCode{api.ReasonInvalid, api.ReasonConflicted}

// Action returns the action for a reason: that of the profile, else def.
func (k *Kind) Action(code api.ReasonCode, def api.Action) api.Action {
	if a, ok := k.Actions[code]; ok {
		return a
	}
	if k.Source == Label && def == api.Deny && slices.Contains(guessed, code) {
		return api.Warn
	}
	return def
}

// ReadsLike reports whether stored policies are read, and overrides protected, the same way
// by both kinds. A schema that is not known counts as the same.
func (k *Kind) ReadsLike(o *Kind) bool {
	return k == o || (k.Source == Label) == (o.Source == Label) && equality.Semantic.DeepEqual(k.PolicyProfileSpec, o.PolicyProfileSpec) &&
		(k.schema == nil || o.schema == nil || k.schema.Same(o.schema))
}

// Has reports whether policies of the kind may be attached at a level.
func (k *Kind) Has(l api.LevelName) bool { return slices.Contains(k.Levels, l) }

// RoutesFirst reports whether policies on a route are more specific than those on its
// backends.
func (k *Kind) RoutesFirst() bool {
	backend := slices.Index(k.Levels, api.LevelBackend)
	return backend >= 0 && backend < slices.Index(k.Levels, api.LevelRoute)
}

// Attaches reports whether references of other objects attach policies of the kind.
func (k *Kind) Attaches() bool { return k.Attachment != api.ProfileAttachment{} }

// NamesNamespaces reports whether the annotation that attaches policies may name one of
// another namespace, as namespace:name.
func (k *Kind) NamesNamespaces() bool {
	return k.Attachment.Annotation != "" && k.Targets.Namespaces == api.NamespacesReferenceGrant
}

// NamedBy returns the policy of the kind that another policy attaches to the objects that it
// is attached to itself, and by which field; ok is false if there is none.
func (k *Kind) NamedBy(p *Policy) (ref api.Ref, by string, ok bool) {
	t := k.Attachment.Through
	if t == nil || t.Kind != p.Kind.Kind || k.Group != p.Kind.Group {
		return api.Ref{}, "", false
	}
	for i := range p.Blocks {
		if rule := p.Blocks[i].At(k.through); rule != nil {
			name, isName := merge.Plain(rule.Value).(string)
			return api.Ref{Group: k.Group, Kind: k.Kind, Namespace: p.Namespace, Name: name}, fmt.Sprintf("%s of %s", t.Field, p.Ref()), isName && name != ""
		}
	}
	return api.Ref{}, "", false
}

// Controls returns the fields of routes that the kind's rules control.
func (k *Kind) Controls() []Field { return k.fields }

// MayOverride reports whether policies of the kind can have overrides.
func (k *Kind) MayOverride() bool {
	b := k.Blocks.Bare
	return len(k.Blocks.Overrides) > 0 || b != nil && len(b.Overrides) > 0
}

// BindsAllNamespaces reports whether an override on a route, its namespace, a rule or
// a backend binds writes of routes in all namespaces, not only in that of its route.
func (k *Kind) BindsAllNamespaces() bool { return k.RouteOverridesBind == api.BoundAllNamespaces }

// MergeSameTarget returns how the policies of one target are applied in the fold.
func (k *Kind) MergeSameTarget() merge.SameTarget {
	switch k.SameTarget {
	case api.OldestWins:
		return merge.SameTargetOldestWins
	case api.Collect:
		return merge.SameTargetCollect
	default:
		return merge.SameTargetHierarchical
	}
}

// MayConflict reports whether policies of the kind can conflict on a target.
func (k *Kind) MayConflict() bool {
	return k.SameTarget == api.None || k.SameTarget == api.Alone || k.SameTarget == api.FieldConflict || k.oneImplicit()
}

// OnlyOne reports whether only one policy of the kind is accepted on a target.
func (k *Kind) OnlyOne(t Target) bool {
	return k.SameTarget == api.None || k.SameTarget == api.Alone || k.oneImplicit() && (t.Ref.Kind == kindMesh || t.Ref.Kind == kindNamespace)
}

func (k *Kind) oneImplicit() bool { return k.Targets.Implicit != nil && k.Targets.Implicit.One }

// LowerDecidesStrategy reports whether the lower of two policies decides how the
// higher one is applied: if the profile sets so, or if the closest policy always
// replaces those above it.
func (k *Kind) LowerDecidesStrategy() bool {
	b := &k.Blocks
	switch {
	case k.SameTarget == api.Collect:
		return false
	case k.Strategy.By == api.StrategyByLower:
		return true
	default:
		return len(b.Defaults)+len(b.Overrides) == 0 && b.Bare == nil && len(k.strategies) == 1 && k.strategies[0] == merge.Atomic
	}
}

// IsGate reports whether a rule is a gate: it decides whether the other rules of its
// policy have an effect.
func (k *Kind) IsGate(rule merge.Key) bool {
	for i := range k.gates {
		if k.gates[i].contains(rule) {
			return true
		}
	}
	return false
}

// Alternative returns the group of alternatives that a rule belongs to and the member
// of it, as keys. A request needs to satisfy only one member of a group. ok is false
// for a rule of no group.
func (k *Kind) Alternative(rule merge.Key) (group, member merge.Key, ok bool) {
	for i := range k.alternatives {
		a := &k.alternatives[i]
		if !a.contains(rule) {
			continue
		}
		if member, ok = rule.Ancestor(len(a.fieldPath) + 1); ok {
			group, _ = rule.Ancestor(len(a.fieldPath))
			return group, member, true
		}
	}
	return merge.Key{}, merge.Key{}, false
}

// Binds reports whether a rule binds to rules of routes, and returns its name.
func (k *Kind) Binds(rule merge.Key) (name string, ok bool) {
	if k.binding == nil || !k.binding.matches(rule) {
		return "", false
	}
	segments := rule.Segments()
	return segments[len(segments)-1], true
}

// target returns the entry of the profile for a target kind, nil if it may not be
// targeted. A profile that lists no target kinds allows all.
func (k *Kind) target(ref api.PolicyKind) *api.TargetKind {
	if len(k.Targets.Kinds) == 0 {
		return &api.TargetKind{Group: ref.Group, Kind: ref.Kind}
	}
	best := -1
	for i, t := range k.Targets.Kinds {
		exact := t.Group == ref.Group && t.Kind == ref.Kind
		if exact || best < 0 && (t.Group == "*" || t.Group == ref.Group) && (t.Kind == "*" || t.Kind == ref.Kind) {
			best = i
		}
		if exact {
			break
		}
	}
	if best < 0 {
		return nil
	}
	return &k.Targets.Kinds[best]
}

// MayTarget reports whether policies of the kind may target a kind.
func (k *Kind) MayTarget(ref api.PolicyKind) bool { return k.target(ref) != nil }

// levelsOf are the levels of policies that target a kind. Other kinds have the levels
// of a route or a backend.
var levelsOf = map[string][]api.LevelName{
	kindGatewayClass: {api.LevelGatewayClass},
	"Gateway":        {api.LevelGateway, api.LevelListener},
	"ListenerSet":    {api.LevelListenerSet, api.LevelListener},
	"XListenerSet":   {api.LevelListenerSet, api.LevelListener},
	kindNamespace:    {api.LevelGatewayNamespace, api.LevelServiceNamespace, api.LevelRouteNamespace},
	kindService:      {api.LevelService, api.LevelBackend},
	kindMesh:         {api.LevelMesh},
}

// HasLevelFor reports whether the kind's hierarchy has a level for policies on
// objects of a kind.
func (k *Kind) HasLevelFor(ref api.PolicyKind) bool {
	at, ok := levelsOf[ref.Kind]
	switch {
	case ok:
	case ref.Group == api.GatewayGroup:
		at = []api.LevelName{api.LevelRoute, api.LevelRule}
	default:
		at = []api.LevelName{api.LevelBackend}
	}
	return slices.ContainsFunc(at, k.Has)
}

// sectionsOf are the levels of the sections of a kind. Ports of a Service have the
// levels of the Service.
var sectionsOf = map[string]api.LevelName{"Gateway": api.LevelListener, "ListenerSet": api.LevelListener, "XListenerSet": api.LevelListener}

// ReadsObjects reports whether the profile says that the objects of a target kind are read.
func (k *Kind) ReadsObjects(kind api.PolicyKind) bool {
	t := k.target(kind)
	return t != nil && t.Objects
}

// JoinsBackends reports whether the policies on a backend of a rule are on all of them.
func (k *Kind) JoinsBackends() bool {
	return slices.ContainsFunc(k.JoinedLevels, func(joined []api.LevelName) bool {
		return slices.Contains(joined, api.LevelRule) && slices.Contains(joined, api.LevelBackend)
	})
}

// HasLevelAt reports whether the kind's hierarchy has a level for policies on a
// target, or on the section of it.
func (k *Kind) HasLevelAt(t api.Target) bool {
	if kind := k.target(t.Target.PolicyKind()); kind != nil && kind.Virtual {
		return true // it has its own path
	}
	section := t.Section != "" || t.Port != 0
	route := t.Target.Group == api.GatewayGroup && strings.HasSuffix(t.Target.Kind, "Route")
	switch at, ok := sectionsOf[t.Target.Kind]; {
	case section && ok:
		return k.Has(at)
	case section && strings.HasSuffix(t.Target.Kind, "Route"):
		return k.Has(api.LevelRule)
	case ok: // a level for its sections is not a level for the whole object
		return k.Has(levelsOf[t.Target.Kind][0])
	case route:
		return k.Has(api.LevelRoute)
	default:
		return k.HasLevelFor(t.Target.PolicyKind())
	}
}

// Shape restores the keyed lists and groups of a spec that was built from rules. It edits
// and returns the spec, which must be the caller's own.
func (k *Kind) Shape(spec map[string]any) map[string]any {
	for _, l := range k.lists {
		restore(spec, l.path, listItems)
	}
	k.restoreGroups(spec)
	return spec
}

// restore replaces the maps at a path by what join returns for them.
func restore(at map[string]any, rest fieldPath, join func(map[string]any) any) {
	for name, value := range at {
		items, ok := value.(map[string]any)
		if !ok || rest[0] != "*" && rest[0] != name {
			continue
		}
		if len(rest) > 1 {
			restore(items, rest[1:], join)
			continue
		}
		at[name] = join(items)
	}
}

// listItems returns the items of a keyed list.
func listItems(items map[string]any) any {
	list := make([]any, 0, len(items))
	for _, key := range sortedKeys(items) {
		list = append(list, items[key])
	}
	return list
}
