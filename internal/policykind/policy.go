package policykind

import (
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Policy is one policy, read by its kind's profile. It is immutable.
type Policy struct {
	merge.Policy
	Kind *Kind
	// Version differs between any two policies that were read: it identifies
	// the content in a memo.
	Version uint64
	// State is the state of the object that the policy was read of, zero where
	// that is not known: two policies of one state say the same.
	State   State
	Targets []Target
	// Onto is how the policy meets the next higher one, in kinds in which the
	// lower dictates or always replaces; nil in others.
	StrategyOnHigher *merge.Strategy
	// Deleting tells that the policy is being deleted, or will be with its owner.
	Deleting bool
	// Binds tells that some rule of it binds to rules of routes.
	Binds bool
	// Unread tells what the policy is attached to that is not read; empty if
	// nothing is.
	Unread string
	// Size is the length of the JSON that the policy was read of, in bytes; 0 for one
	// that the store holds.
	Size int
	// Idle are gates beside the blocks of the policy that take no part, since there
	// is no other rule beside the blocks; none for most.
	IgnoredGates []string
	// Invalid tells why the policy cannot be read or compiled; nil if it can.
	// An invalid policy takes no part.
	Invalid error
}

// State is the state of one object: its uid, and the resourceVersion that it had.
type State struct{ UID, Version string }

// Known reports whether the state is one that an API server gave.
func (s State) Known() bool { return s.UID != "" && s.Version != "" }

var versions atomic.Uint64

// NextVersion returns a version that no policy has.
func NextVersion() uint64 { return versions.Add(1) }

// Above returns how the bare rules of the policies above are read, given how
// those of this one are: what is above a policy that replaces it has no way past
// it, and one that is merged without a rule changes nothing (SEMANTICS section 3).
func (p *Policy) Above(as *merge.Reading) *merge.Reading {
	replaced := as != nil && as.Strategy == merge.Atomic
	if p.StrategyOnHigher == nil || replaced || p.Empty() && *p.StrategyOnHigher != merge.Atomic {
		return as
	}
	out := &merge.Reading{Block: merge.Bare, Strategy: *p.StrategyOnHigher}
	if p.Empty() {
		out.By = &p.Policy
	}
	return out
}

// Ref names the policy.
func (p *Policy) Ref() api.Ref {
	return api.Ref{Group: p.Kind.Group, Kind: p.Kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// Same reports whether two policies read the same, whatever their versions.
func (p *Policy) Same(o *Policy) bool {
	return p.Kind == o.Kind && p.Namespace == o.Namespace && p.Name == o.Name && p.Created == o.Created &&
		p.Rank == o.Rank && p.Deleting == o.Deleting && p.Unread == o.Unread && equal(p.StrategyOnHigher, o.StrategyOnHigher) &&
		slices.EqualFunc(p.Targets, o.Targets, Target.Same) && slices.Equal(p.Unset, o.Unset) &&
		slices.EqualFunc(p.Blocks, o.Blocks, sameBlock) &&
		(p.Invalid == nil) == (o.Invalid == nil) && (p.Invalid == nil || p.Invalid.Error() == o.Invalid.Error())
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameBlock(a, b merge.Rules) bool {
	return a.Block == b.Block && a.Strategy == b.Strategy &&
		(a.When == nil) == (b.When == nil) && (a.When == nil || a.When.String() == b.When.String()) &&
		slices.EqualFunc(a.Rules, b.Rules, func(a, b merge.Rule) bool {
			return a.Key == b.Key && a.EmptyMap == b.EmptyMap && merge.Equal(a.Value, b.Value)
		})
}

// Target is one target reference of a policy.
type Target struct {
	// Ref names the object. With a Selector it has no name, and no namespace
	// where the selector has its own rule for them.
	Ref api.Ref
	// Section is a listener's, a rule's or a port's name, empty for the whole
	// object.
	Section string
	// Port is a listener's or a service's number, 0 for all.
	Port     int32
	Selector *Selector
	// Virtual tells that the kind exists nowhere as objects.
	Virtual bool
	// Grant tells that a ReferenceGrant has to allow the target.
	Grant bool
	// Consumer tells that only traffic from the policy's own namespace is
	// affected.
	Consumer bool
	// Refused tells why the policy may not target this, where it may not.
	Refused string
}

// Selector selects targets by their labels.
type Selector struct {
	Labels labels.Selector
	// AnyNamespace, or those that Namespaces selects by their labels; else the
	// policy's own.
	AnyNamespace bool
	Namespaces   labels.Selector
}

// Own reports whether it selects in the policy's own namespace alone.
func (s *Selector) Own() bool { return !s.AnyNamespace && s.Namespaces == nil }

// String returns the selector as kubectl spells it.
func (s *Selector) String() string {
	text := s.Labels.String()
	if text == "" {
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

// Same reports whether two targets say the same.
func (t Target) Same(o Target) bool {
	if (t.Selector == nil) != (o.Selector == nil) || t.Selector != nil && t.Selector.String() != o.Selector.String() {
		return false
	}
	t.Selector, o.Selector = nil, nil
	return t == o
}

// Whole reports whether the target is a whole object, no section of it.
func (t Target) Whole() bool { return t.Section == "" && t.Port == 0 }

// String names the target as messages do.
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
