package guard

import (
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// replacedPolicy is a policy that another one replaces as a whole, on a number of paths.
type replacedPolicy struct {
	from, to, inForce *merge.Policy
	paths             int
}

func (r *overriddenRule) replacedPolicy() replacedPolicy {
	return replacedPolicy{r.from, r.to, r.inForce, r.paths}
}

// countReplaced counts the rules that are lost together with others of their policy.
func countReplaced(rules []*overriddenRule) map[replacedPolicy]int {
	out := make(map[replacedPolicy]int)
	for _, r := range rules {
		if r.whole {
			out[r.replacedPolicy()]++
		}
	}
	return out
}

// reportOwn reports the rules of the policy that is written that have no effect
// on some path, or where more specific policies replace them, on any.
func (ev *overriddenRules) reportOwn() {
	own := ev
	rules := slices.DeleteFunc(slices.Collect(maps.Values(own.own.entries)), func(r *overriddenRule) bool { return r.cause.isDefault() && own.inForce[r.rule] })
	together := countReplaced(rules)
	for _, r := range rules {
		n := together[r.replacedPolicy()]
		whole := r.whole && n > 1
		if r.conditional && !r.equal && r.cause == byOverride {
			ev.reportConstraintViolated(r)
			continue
		}
		ev.reportOverridden(r, Finding{Rule: r.rule, ReplacedAsWhole: whole}, r.rule+" has")
		if whole {
			ev.reportOverridden(r, Finding{ReplacedAsWhole: true}, fmt.Sprintf("all %d rules have", n))
		}
	}
}

// overrideTarget names the object through which the policy in force reaches the path.
func overrideTarget(r *overriddenRule) string {
	return r.on.Path.Element(r.on.Level(r.to)).String()
}

// reportOverridden reports rules of the policy that is written that have no effect, all of
// them where the finding names none.
func (ev *overriddenRules) reportOverridden(r *overriddenRule, f Finding, rules string) {
	by := r.on.Ref(r.to)
	objects := objectsText(r.on, r.objects)
	paths, on := "", " on "+objects
	if r.paths < ev.ownPaths {
		paths = fmt.Sprintf(" on %d of %s", r.paths, api.Plural(ev.ownPaths, "path"))
		on = fmt.Sprintf("%s (%s)", paths, objects)
	}
	overrides, why := r.cause.does(), r.cause.why()
	if f.Rule == "" {
		overrides = "replaces the policy as a whole"
	}
	if why != "" {
		why = ", since it " + why
	}
	f.Policy = by
	named := on
	if objects == overrideTarget(r) || objects == by.String() {
		named = paths // it is named anyway
	}
	f.What = fmt.Sprintf("%s no effect%s: %s %s on %s%s", rules, named, by, overrides, overrideTarget(r), why)
	f.Short = fmt.Sprintf("%s no effect%s: %s %s%s", rules, on, by, overrides, why)
	f.Advice = fmt.Sprintf("ask the owner of %s", by.Key())
	if r.cause == bySpecific {
		f.Advice = "it applies where no more specific policy replaces it"
	}
	switch {
	case r.several:
		f.What = fmt.Sprintf("%s no effect on any path: more specific policies take precedence, such as %s on %s", rules, by, overrideTarget(r))
		f.Short = ""
	case r.inForce != nil:
		last := r.on.Ref(r.inForce)
		f.What += fmt.Sprintf(", and %s is in force there", last)
		f.Advice = fmt.Sprintf("ask the owners of %s and %s", by.Key(), last.Key())
	}
	ev.report(api.ReasonOverridden, api.Warn, f)
}

// reportOthers reports which rules of other policies lose their effect.
func (ev *overriddenRules) reportOthers() {
	rules := ev.others.sorted(compareOverridden)
	together, shown := countReplaced(rules), make(map[replacedPolicy]bool)
	lines, rest := 0, 0
	for i, r := range rules {
		group := r.replacedPolicy()
		if n := together[group]; n > 1 && r.whole && !shown[group] && lines < maxOverriddenOthers {
			ev.reportOther(r, Finding{ReplacedAsWhole: true}, fmt.Sprintf("all %d rules", n), "lose their effect", "replaces it as a whole")
			shown[group] = true
			lines++
		}
		whole := r.whole && shown[group]
		switch {
		case i < maxOverriddenOthers:
			ev.reportOther(r, Finding{Rule: r.rule, ReplacedAsWhole: whole}, r.rule, "loses its effect", "overrides it")
			lines++
		case !whole:
			rest++
		}
	}
	if rest > 0 {
		more := api.Plural(rest, "more rule")
		if ev.others.more {
			more = "more than " + more
		}
		ev.warn(api.ReasonOverridden, Finding{}, "%s of other policies also lose their effect", more)
	}
}

// reportOther reports what another policy loses.
func (ev *overriddenRules) reportOther(r *overriddenRule, f Finding, rules, lose, overrides string) {
	from := r.on.Ref(r.from)
	f.Policy = from
	ev.warn(api.ReasonOverridden, f, "%s of %s %s on %s: %s %s", rules, from, lose, api.Plural(r.paths, "path"), r.on.Ref(r.to), overrides)
}

// reportConstraintViolated reports a rule that a conditional override replaces or removes.
func (ev *overriddenRules) reportConstraintViolated(r *overriddenRule) {
	by := r.on.Ref(r.to)
	ev.report(api.ReasonConstraintViolated, newly(r.before), Finding{
		Rule: r.rule, Policy: by,
		What: fmt.Sprintf("%s: Invalid value: %s: not allowed by %s on %s (when: %s): %s",
			r.rule, compactJSON(r.lost.Value), by, overrideTarget(r), overrideCondition(r), ev.replacementText(r)),
		Short:  fmt.Sprintf("%s is not allowed by %s", r.rule, by),
		Advice: fmt.Sprintf("change it or ask the owner of %s", by.Key()),
	})
}

// overrideCondition returns the condition of the overrides block that beat the rule.
func overrideCondition(r *overriddenRule) string {
	for _, b := range r.to.Blocks {
		if when := b.Condition(); b.Block == merge.Overrides && when != "" {
			return when
		}
	}
	return ""
}

// replacementText says what is in force in place of the lost rule: the value that the
// override sets, and of a policy that overrides that one its name alone.
func (ev *overriddenRules) replacementText(r *overriddenRule) string {
	for _, e := range r.on.Rules {
		if e.Key == r.lost.Key && e.Value != nil {
			if e.From.Policy != r.to && !ev.guard.ReadsAll {
				return "it would be replaced by the value of " + r.on.Ref(e.From.Policy).String()
			}
			return "it would be replaced by " + compactJSON(e.Value)
		}
	}
	return "it would be removed"
}

// overriddenCause is why a rule of another policy is in force in place of a rule: what that
// policy is, or has, that the other one does not, or what it does.
type overriddenCause string

const (
	byItself   overriddenCause = "" // no cause: another block of the policy is in force
	byOverride overriddenCause = "overrides it"
	byUnset    overriddenCause = "unsets it" // in a lower policy's unset list
	byOrder    overriddenCause = "comes first in the order of the kind"
	byFilter   overriddenCause = "is attached by an earlier filter"
	byAge      overriddenCause = "is older"
	byFirst    overriddenCause = "is as old and first by name"
	byLast     overriddenCause = "is as old and last by name" // as among defaults
	byYouth    overriddenCause = "is newer"                   // likewise
	bySection  overriddenCause = "is attached to the section"
	bySpecific overriddenCause = "is more specific"
)

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
		if e.Layers[i].Same(p) && is(gateway.Level(e.Layers[i].Level)) {
			return true
		}
	}
	return false
}
