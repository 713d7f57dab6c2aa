package guard

import (
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// overriddenCause is why a rule of another policy is in force in place of a rule.
type overriddenCause uint8

const (
	byItself   overriddenCause = iota // no cause: another block of the policy is in force
	byOverride                        // of a higher policy
	byOrder                           // of the kind, among the policies of one target
	byFilter                          // of the filters of a rule
	byAge                             // the older one of a target has precedence
	byName                            // as byAge, of two that were created together
	byYouth                           // the newer one of a target has precedence, as among defaults
	bySection                         // of the target of the policy
	bySpecific                        // a more specific policy
	byUnset                           // a lower policy's unset list
)

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
	default:
		return byName
	}
}

// shareTarget reports whether two policies are attached at one level of a path.
func shareTarget(e *effective.Effective, a, b *merge.Policy) bool {
	return attached(e, a, func(level gateway.Level) bool {
		return attached(e, b, func(other gateway.Level) bool { return level == other })
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
		if e.Layers[i].Policy == p && is(gateway.Level(e.Layers[i].Level)) {
			return true
		}
	}
	return false
}

// ownDefaults are rules of the policy that is written that more specific policies replace
// on some paths. That is what defaults are for, unless they are in force on none.
type ownDefaults struct {
	replaced map[string]*overriddenRule
	inForce  map[string]bool
	last     *merge.Result // whose rules are known: many paths share one
}

// addInForce adds the rules of the policy that are in force on a path.
func (d *ownDefaults) addInForce(e *effective.Effective, own *merge.Policy) {
	if d.last == e.Result {
		return
	}
	d.last = e.Result
	if d.inForce == nil {
		d.inForce = make(map[string]bool)
	}
	for i := range e.Rules {
		if e.Rules[i].From.Policy == own {
			d.inForce[e.Rules[i].Key.String()] = true
		}
	}
}

// add adds a rule that a more specific policy replaces on a path.
func (d *ownDefaults) add(e *effective.Effective, o *merge.Outcome, l merge.Lost, cause overriddenCause, whole bool) {
	if d.replaced == nil {
		d.replaced = make(map[string]*overriddenRule)
	}
	rule := l.Key.String()
	had := d.replaced[rule]
	if had == nil {
		had = &overriddenRule{key: overriddenRuleKey{from: o.Policy, rule: rule, to: l.To.Policy, inForce: l.InForce, whole: whole, cause: cause}, lost: l, on: e}
		d.replaced[rule] = had
	}
	had.addPath(e)
	had.several = had.several || had.key.to != l.To.Policy
	had.key.whole = had.key.whole && whole
}

// nowhereInForce returns the rules that are in force on no path.
func (d *ownDefaults) nowhereInForce() []*overriddenRule {
	var out []*overriddenRule
	for rule, r := range d.replaced {
		if !d.inForce[rule] {
			out = append(out, r)
		}
	}
	return out
}
