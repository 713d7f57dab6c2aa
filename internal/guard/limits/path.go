package limits

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// Path is the limits in force on a path, in the order in which they bind, and what
// they bind to. A nil Path has none.
type Path struct {
	bound     *effective.Bound
	effective *effective.Effective
}

// Pair is the limits of a path before and after the write; nil where there are none.
type Pair struct{ Before, After *Path }

// None reports whether the path has limits neither before nor after the write.
func (p Pair) None() bool { return p.Before == nil && p.After == nil }

// HostsChanged reports whether requests for other hostnames reach the path after the
// write, which may matter to what binds there.
func (p Pair) HostsChanged(paths effective.Pair) bool {
	return p.Before != nil && p.After != nil && !slices.Equal(paths.Before.Path.Hosts(), paths.After.Path.Hosts())
}

func bind(b *effective.Binder, e *effective.Effective) *Path {
	if bound := b.Bind(e); bound != nil {
		return &Path{bound, e}
	}
	return nil
}

// Triggered reports whether any of the limits has triggers.
func (p *Path) Triggered() bool { return p.bound.Triggered() }

// Holds reports whether an override is bound to the path's rule.
func (p *Path) Holds(o effective.Override) bool {
	if p == nil {
		return false
	}
	i := p.bound.Place(o.Key)
	return i >= 0 && p.bound.Rules[i].From.Policy == o.Policy && p.bound.Binds(i)
}

// Why an override is not bound to a rule. Each is the beginning of a clause that ends
// with the name of the rule.
const (
	// Unmatched means that its triggers do not match the rule.
	Unmatched = "its triggers do not match"
	// HostnamesUnmatched means that its triggers match the rule only for hostnames by
	// which no request reaches it.
	HostnamesUnmatched = "no request for the hostnames of its triggers reaches"
	// RuleRemoved means that the write removes the rule, and the triggers do not match
	// another one.
	RuleRemoved = "its rule would be removed, and its triggers do not match"
)

// UnboundReason returns why an override that is given on the path is not bound to its
// rule, in the same words for all rules: one of the constants, or a whole clause. It is
// "" where the override is bound, or where another override, as high or higher, takes
// its place.
func (p *Path) UnboundReason(o effective.Override) string {
	if p == nil {
		return ""
	}
	i := p.bound.Place(o.Key)
	if i < 0 || p.bound.Binds(i) {
		return ""
	}
	if !p.limit(i).Matches(p.rule()) {
		return p.unmatchedReason(i, o)
	}
	holder := p.bound.Rules[p.bound.Holder()]
	if p.overridesAt(holder, o.Level) {
		return ""
	}
	return fmt.Sprintf("%s of %s, which precedes it by name, would be bound instead", holder.Key, p.effective.Ref(holder.From.Policy))
}

// unmatchedReason is UnboundReason of a limit that does not match the path's rule.
func (p *Path) unmatchedReason(place int, o effective.Override) string {
	r := p.bound.Rules[place]
	if !merge.Equal(r.Value, o.Value) && p.overridesAt(r, o.Level) {
		return ""
	}
	if len(p.limit(place).ExcludingHostnames(p.rule())) > 0 {
		return HostnamesUnmatched
	}
	return Unmatched
}

// overridesAt reports whether a rule is an override of a policy at a level or above it.
func (p *Path) overridesAt(r *merge.Effective, level gateway.Level) bool {
	return r.From.Block == merge.Overrides && p.effective.Level(r.From.Policy) <= level
}

// rule is the position of the path's rule in its route.
func (p *Path) rule() int { return p.effective.Path.Rule }

// limit returns what the limit at a place binds to.
func (p *Path) limit(place int) *ratelimit.Bound { return &p.bound.Binding.Limits[place] }

// policy names the policy of the limit at a place.
func (p *Path) policy(place int) api.Ref { return p.effective.Ref(p.bound.Rules[place].From.Policy) }

// key returns the key of the limit at a place.
func (p *Path) key(place int) key {
	r := p.bound.Rules[place]
	return key{p.effective.Kind.Ref(), r.Key, r.From.Block, r.From.Policy.Namespace, r.From.Policy.Name}
}

// find returns the place of the limit of a key that a policy of that name gives,
// or -1.
func (p *Path) find(k merge.Key, policy *merge.Policy) int {
	if p == nil {
		return -1
	}
	i := p.bound.Place(k)
	if i >= 0 && !p.bound.Rules[i].From.Policy.Same(policy) {
		return -1
	}
	return i
}

// matches reports whether a limit of the name and policy of r matches a rule.
func (p *Path) matches(r *merge.Effective, rule int) bool {
	i := p.find(r.Key, r.From.Policy)
	return i >= 0 && p.limit(i).Matches(rule)
}
