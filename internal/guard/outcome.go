package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// outcomeOf returns the place of a policy among those of a path, or -1.
func outcomeOf(e *effective.Effective, policy *merge.Policy) int {
	if e == nil {
		return -1
	}
	return slices.IndexFunc(e.Outcomes, func(o merge.Outcome) bool { return o.Policy.Same(policy) })
}

// isOverridden reports whether an override of a higher policy took a rule of the i-th
// policy. That a lower policy's rule beats a default is no loss, in whichever block it is.
func isOverridden(e *effective.Effective, i int, l merge.Lost) bool {
	return l.To.Block == merge.Overrides && slices.ContainsFunc(e.Outcomes[:i], func(o merge.Outcome) bool { return o.Policy == l.To.Policy })
}

func nameOf(p *merge.Policy) string {
	if p == nil {
		return ""
	}
	return p.Namespace + "/" + p.Name
}

// wasInForce reports whether a rule of the policy took part and was not lost.
func wasInForce(o *merge.Outcome, k merge.Key) bool {
	return o.LostAt(k) == nil && slices.ContainsFunc(o.Blocks(), func(b merge.Rules) bool { return b.At(k) != nil && o.BlockApplied(b.Block) })
}

// overriddenCause is why a rule of another policy is in force in place of a rule: what that
// policy is, or has, that the other one does not, or what it does.
type overriddenCause string

// isDefault reports whether a more specific policy replaces the rule. That is what defaults
// are for, unless they are in force on no path.
func (c overriddenCause) isDefault() bool { return c == bySpecific || c == byUnset }

// does says what the policy in force does to the rule.
func (c overriddenCause) does() string {
	if c.why() == "" {
		return string(c)
	}
	return "takes precedence"
}

// why says why the policy in force has precedence, "" where what it does says so.
func (c overriddenCause) why() string {
	if c == byOverride || c == byUnset {
		return ""
	}
	return string(c)
}

// causeOf returns why the i-th policy of a path lost a rule.
func causeOf(e *effective.Effective, i int, l merge.Lost) overriddenCause {
	own, to := e.Outcomes[i].Policy, l.To.Policy
	switch {
	case own == to:
		return byItself
	case isOverridden(e, i, l):
		return byOverride
	case l.To.Block == merge.Unset:
		return byUnset
	case onOtherFilter(e, own, to):
		return byFilter
	case shareTarget(e, own, to):
		return causeOnTarget(own, to)
	case l.Block != merge.Defaults && onSection(e, own, to):
		return bySection
	default:
		return bySpecific
	}
}

// causeOnTarget returns why a policy has precedence over another one on the same target.
func causeOnTarget(own, to *merge.Policy) overriddenCause {
	switch {
	case own.Rank != to.Rank:
		return byOrder
	case own.Created > to.Created:
		return byAge
	case own.Created < to.Created:
		return byYouth
	case nameOf(own) < nameOf(to):
		return byLast
	default:
		return byFirst
	}
}

// shareTarget reports whether two policies are on the same target of a path.
func shareTarget(e *effective.Effective, a, b *merge.Policy) bool {
	return slices.ContainsFunc(e.Layers, func(l merge.Layer) bool {
		return l.Same(a) && slices.ContainsFunc(e.Layers, func(o merge.Layer) bool { return o.Same(b) && l.Beside(&o) })
	})
}

// onOtherFilter reports whether two policies are attached by different filters of a rule.
func onOtherFilter(e *effective.Effective, a, b *merge.Policy) bool {
	place := func(p *merge.Policy) int {
		return slices.IndexFunc(e.Layers, func(l merge.Layer) bool { return l.Policy == p && gateway.Level(l.Level) == gateway.LevelFilter })
	}
	x, y := place(a), place(b)
	return x >= 0 && y >= 0 && e.Layers[x].Place != e.Layers[y].Place
}

// onSection reports whether a policy is attached to a section of an object of a path to
// which another one is attached.
func onSection(e *effective.Effective, whole, section *merge.Policy) bool {
	return attached(e, whole, func(level gateway.Level) bool {
		below := sectionLevel(&e.Path, level)
		return below > level && attached(e, section, func(other gateway.Level) bool {
			return other == below || below == gateway.LevelRule && other == gateway.LevelFilter
		})
	})
}

// sectionLevel returns the level of the sections of the object at a level of a path, or
// the level itself.
func sectionLevel(p *gateway.Path, level gateway.Level) gateway.Level {
	switch {
	case level == gateway.LevelGateway && p.Set == nil, level == gateway.LevelListenerSet:
		return gateway.LevelListener
	case level == gateway.LevelRoute:
		return gateway.LevelRule
	case level == gateway.LevelRule:
		return gateway.LevelFilter
	case level == gateway.LevelService:
		return gateway.LevelServicePort
	case level == gateway.LevelBackend:
		return gateway.LevelBackendPort
	default:
		return level
	}
}

// attached reports whether a policy is attached at a level of a path that is meant.
func attached(e *effective.Effective, p *merge.Policy, is func(gateway.Level) bool) bool {
	for i := range e.Layers {
		if e.Layers[i].Same(p) && is(gateway.Level(e.Layers[i].Level)) {
			return true
		}
	}
	return false
}
