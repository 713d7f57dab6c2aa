package policykind

import (
	"slices"
	"sync/atomic"

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
	Targets []Target
	// Invalid tells why the policy cannot be read or compiled; nil if it can.
	// An invalid policy takes no part.
	Invalid error
}

var versions atomic.Uint64

// Ref names the policy.
func (p *Policy) Ref() api.Ref {
	return api.Ref{Group: p.Kind.Group, Kind: p.Kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// Has reports whether the policy may target, and does, the very same object and
// section.
func (p *Policy) Has(t Target) bool {
	return slices.ContainsFunc(p.Targets, func(own Target) bool {
		return own.Ref == t.Ref && own.Section == t.Section && own.Refused == ""
	})
}

// Same reports whether two policies read the same, whatever their versions.
func (p *Policy) Same(o *Policy) bool {
	return p.Kind == o.Kind && p.Namespace == o.Namespace && p.Name == o.Name && p.Created == o.Created &&
		slices.Equal(p.Targets, o.Targets) && slices.Equal(p.Unset, o.Unset) &&
		slices.EqualFunc(p.Blocks, o.Blocks, sameBlock) &&
		(p.Invalid == nil) == (o.Invalid == nil) && (p.Invalid == nil || p.Invalid.Error() == o.Invalid.Error())
}

func sameBlock(a, b merge.Rules) bool {
	return a.Block == b.Block && a.Strategy == b.Strategy &&
		(a.When == nil) == (b.When == nil) && (a.When == nil || a.When.String() == b.When.String()) &&
		slices.EqualFunc(a.Rules, b.Rules, func(a, b merge.Rule) bool {
			return a.Key == b.Key && a.Hollow == b.Hollow && merge.Equal(a.Value, b.Value)
		})
}

// Target is one target reference of a policy.
type Target struct {
	Ref api.Ref
	// Section is a listener's or a rule's name, empty for the whole object.
	Section string
	// Refused tells why the policy may not target this, where it may not.
	Refused string
}

// String names the target as messages do.
func (t Target) String() string {
	if t.Section == "" {
		return t.Ref.String()
	}
	return t.Ref.String() + " section " + t.Section
}
