package guard

import (
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
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
	rules := slices.DeleteFunc(slices.Collect(maps.Values(ev.own.entries)), func(r *overriddenRule) bool { return r.cause.isDefault() && ev.inForce[r.rule] })
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
	short := fmt.Sprintf("%s is not allowed by %s on %s", r.rule, by, overrideTarget(r))
	ev.report(api.ReasonConstraintViolated, newly(r.before), Finding{
		Rule: r.rule, Policy: by,
		What: fmt.Sprintf("%s: Invalid value: %s: not allowed by %s on %s (when: %s): %s",
			r.rule, compactJSON(r.lost.Value), by, overrideTarget(r), overrideCondition(r), ev.replacementText(r)),
		Short:  shortText(fmt.Sprintf("%s (when: %s)", short, overrideCondition(r)), short),
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
