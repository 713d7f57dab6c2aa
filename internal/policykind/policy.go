package policykind

import (
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Policy is a policy as its kind's profile reads it. It is immutable.
type Policy struct {
	merge.Policy
	Kind *Kind
	// Version is unique for each policy that was read: it is its key in a memo.
	Version uint64
	// State is the state of the object that the policy was read from, zero if
	// unknown. Two policies of the same state have the same content.
	State   State
	Targets []Target
	// Backends are the backends that its content refers to, such as an authentication
	// service: requests go there without a route.
	Backends []Backend
	// StrategyOnHigher is the strategy with which the next higher policy is applied,
	// in kinds whose lower policy decides it or always replaces; nil in others.
	StrategyOnHigher *merge.Strategy
	// BareOverrides is how the bare rules are applied at the levels where they are
	// overrides, nil if they are the same at all levels.
	BareOverrides *merge.Reading
	// routes are the routes whose paths have each of the Parts.
	routes []routeIdentifier
	// places are those of each of the Parts, in kinds with places.
	places []Place
	// SelectsPods is set if it selects the pods of a gateway: it has no effect on a waypoint.
	SelectsPods bool
	// Deleting is set if the policy is being deleted, or will be with its owner.
	Deleting bool
	// Owners are its owners. They have no namespace here: it is that of the policy, or none.
	Owners []api.Ref
	// Binds is set if a rule of the policy binds to rules of routes.
	Binds bool
	// None is set if the object is no policy, and nothing else of it is read: its kind is known
	// by its label alone, and it has no target.
	None bool
	// Unread is why the targets of the policy are not known; empty if they are.
	Unread string
	// Size is the length of the JSON that the policy was read from, in bytes; 0 for a
	// policy of a snapshot.
	Size int
	// IgnoredGates are gates outside the blocks of the policy that are not applied,
	// because there is no other rule outside the blocks.
	IgnoredGates []string
	// False are rules that have no effect, because they are false, and conflict with others.
	False []merge.Rule
	// Invalid is why the policy cannot be read or compiled; nil if it can. An invalid
	// policy is not applied.
	Invalid error

	fields fields
	packed bool // see Pack
}

// State identifies the state of an object by its uid and resourceVersion.
type State struct{ UID, Version string }

// Known reports whether an API server set the state.
func (s State) Known() bool { return s.UID != "" && s.Version != "" }

var versions atomic.Uint64

// NextVersion returns a version that no policy has yet.
func NextVersion() uint64 { return versions.Add(1) }

// Above returns how the bare rules of the higher policies are applied, given how
// those of this one are (SEMANTICS section 3). A policy that replaces those above it
// replaces all of them, and a policy without rules that is merged changes nothing.
func (p *Policy) Above(as *merge.Reading) *merge.Reading {
	replaced := as != nil && as.Strategy == merge.Atomic
	if p.StrategyOnHigher == nil || replaced || p.Empty() && *p.StrategyOnHigher != merge.Atomic {
		return as
	}
	out := &merge.Reading{Block: merge.Bare, Strategy: *p.StrategyOnHigher}
	if out.Strategy == merge.Atomic {
		out.By = &p.Policy
	}
	return out
}

// Merges reports whether the policy is merged with higher ones.
func (p *Policy) Merges() bool {
	return p.StrategyOnHigher != nil && *p.StrategyOnHigher != merge.Atomic
}

// HasOverrides reports whether a rule of the policy is an override, at some level at least.
func (p *Policy) HasOverrides() bool {
	return slices.ContainsFunc(p.Blocks, func(b merge.Rules) bool {
		return b.Block == merge.Overrides || b.Block == merge.Bare && p.BareOverrides != nil
	})
}

// Ref returns the reference of the policy.
func (p *Policy) Ref() api.Ref {
	return api.Ref{Group: p.Kind.Group, Kind: p.Kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// Same reports whether two policies have the same content, whatever their versions.
func (p *Policy) Same(o *Policy) bool {
	return p.Kind == o.Kind && p.Namespace == o.Namespace && p.Name == o.Name && p.Created == o.Created &&
		p.Rank == o.Rank && p.SelectsPods == o.SelectsPods && p.Deleting == o.Deleting && slices.Equal(p.Owners, o.Owners) && p.Unread == o.Unread && equal(p.StrategyOnHigher, o.StrategyOnHigher) && equal(p.BareOverrides, o.BareOverrides) &&
		slices.EqualFunc(p.Targets, o.Targets, Target.Same) && slices.Equal(p.Backends, o.Backends) && slices.Equal(p.Unset, o.Unset) &&
		slices.EqualFunc(p.Blocks, o.Blocks, sameBlock) && slices.Equal(p.routes, o.routes) &&
		slices.EqualFunc(p.Parts, o.Parts, func(a, b []merge.Rules) bool { return slices.EqualFunc(a, b, sameBlock) }) &&
		(p.Invalid == nil) == (o.Invalid == nil) && (p.Invalid == nil || p.Invalid.Error() == o.Invalid.Error())
}

// SameRules reports whether two policies have the same rules.
func (p *Policy) SameRules(o *Policy) bool {
	return p == o || slices.EqualFunc(p.Blocks, o.Blocks, sameBlock)
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameBlock(a, b merge.Rules) bool {
	return a.Block == b.Block && a.Strategy == b.Strategy &&
		(a.When == nil) == (b.When == nil) && (a.When == nil || a.When.String() == b.When.String()) &&
		slices.EqualFunc(a.Rules, b.Rules, func(a, b merge.Rule) bool {
			return a.Key == b.Key && a.EmptyMap == b.EmptyMap && a.Group == b.Group && merge.Equal(a.Value, b.Value)
		})
}

// Target is one target reference of a policy.
type Target struct {
	// Ref is the reference of the object. With a Selector it has no name, and no
	// namespace if the selector selects namespaces.
	Ref api.Ref
	// Section is the name of a listener, a rule or a port, empty for the whole
	// object.
	Section string
	// Port is the port number of a listener or a Service, 0 for all.
	Port     int32
	Selector *Selector
	// Virtual is set if there are no objects of the kind.
	Virtual bool
	// Grant is set if a ReferenceGrant must allow the target, or with AttachedBy its
	// reference to the policy.
	Grant bool
	// Consumer is set if only traffic from the policy's namespace is affected.
	Consumer bool
	// Refused is why the policy may not target this; empty if it may.
	Refused string
	// AttachedBy is the reference of the object that attaches the policy to it: ExtensionRef,
	// ParametersRef, the name of an annotation, or a field of another policy. It is empty if
	// the policy names the target.
	AttachedBy string
	// Rule is the position of the rule with the filter that is an ExtensionRef, and Place
	// that of the reference among those of the rule. For another target, Place is 1 for a
	// GatewayClass whose policy takes the place of those of its Gateways.
	Rule, Place int
}

// The references that attach a policy (Target.AttachedBy), besides annotations.
const (
	ExtensionRef  = "ExtensionRef"
	ParametersRef = "parametersRef"
)

// Selector selects targets by their labels.
type Selector struct {
	Labels labels.Selector
	// Name is that of the objects, "" for any.
	Name string
	// AnyNamespace selects in all namespaces, Namespaces in those with matching
	// labels. If neither is set, the selector selects in the policy's own namespace.
	AnyNamespace bool
	Namespaces   labels.Selector
}

// Own reports whether it selects only in the policy's own namespace.
func (s *Selector) Own() bool { return !s.AnyNamespace && s.Namespaces == nil }

// String returns the selector as kubectl prints it.
func (s *Selector) String() string {
	text := s.Labels.String()
	switch {
	case s.Name != "":
		text = "name " + s.Name
	case text == "":
		text = "any labels"
	}
	switch {
	case s.AnyNamespace:
		text += " in any namespace"
	case s.Namespaces != nil:
		text += " in namespaces with " + s.Namespaces.String()
	}
	return text
}

// Same reports whether two targets are equal.
func (t Target) Same(o Target) bool {
	if (t.Selector == nil) != (o.Selector == nil) || t.Selector != nil && t.Selector.String() != o.Selector.String() {
		return false
	}
	t.Selector, o.Selector = nil, nil
	return t == o
}

// Whole reports whether the target is a whole object, not a section of it.
func (t Target) Whole() bool { return t.Section == "" && t.Port == 0 }

// SamePlace reports whether two targets are equal in what they select of an object.
func (t Target) SamePlace(o Target) bool {
	return t.Section == o.Section && t.Port == o.Port && t.Rule == o.Rule && t.Place == o.Place && (t.AttachedBy == ExtensionRef) == (o.AttachedBy == ExtensionRef)
}

// String returns the target as messages name it.
func (t Target) String() string {
	text := t.Ref.String()
	if t.Selector != nil {
		text = fmt.Sprintf("%s with %s", t.Ref.Kind, t.Selector)
	}
	if t.Section != "" {
		text += " section " + t.Section
	}
	if t.Port != 0 {
		text += fmt.Sprintf(" port %d", t.Port)
	}
	return text
}
