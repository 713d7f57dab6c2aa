package guard

import (
	"fmt"
	"maps"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// replacedPolicy is a policy that another one replaces as a whole, on a number of paths.
type replacedPolicy struct {
	from, to, inForce *merge.Policy
	paths             int
}

func (r *overriddenRule) replacedPolicy() replacedPolicy {
	return replacedPolicy{r.key.from, r.key.to, r.key.inForce, r.paths}
}

// countReplacedPolicies counts the rules that were lost together, where they are more than one.
func countReplacedPolicies(rules []*overriddenRule) map[replacedPolicy]int {
	out := make(map[replacedPolicy]int)
	for _, r := range rules {
		if r.key.whole {
			out[r.replacedPolicy()]++
		}
	}
	maps.DeleteFunc(out, func(_ replacedPolicy, n int) bool { return n == 1 })
	return out
}

// reportOverriddenOwn reports the rules of the policy that is written that have no effect
// on some path, or where more specific policies replace them, on any.
func (ev *evaluation) reportOverriddenOwn() {
	own := &ev.overriddenRules
	rules := own.ownPolicy.sorted(own.ownDefaults.nowhereInForce()...)
	whole := countReplacedPolicies(rules)
	for _, r := range rules {
		n := whole[r.replacedPolicy()]
		switch {
		case r.key.conditional && !r.key.equal && r.key.cause == byOverride:
			ev.reportConstraintViolated(r)
		case r.key.whole && n > 0:
			ev.reportOverridden(r, Finding{Rule: r.key.rule, ReplacedAsWhole: true}, r.key.rule+" has", false)
			ev.reportOverridden(r, Finding{ReplacedAsWhole: true}, fmt.Sprintf("all %d rules have", n), true)
		default:
			ev.reportOverridden(r, Finding{Rule: r.key.rule}, r.key.rule+" has", false)
		}
	}
}

// overrideTarget names the object through which the policy in force reaches the path.
func overrideTarget(r *overriddenRule) string {
	return r.on.Path.Element(r.on.Level(r.key.to)).String()
}

// reportOverridden reports rules of the policy that is written that have no effect, all of
// them if the policy is replaced as a whole.
func (ev *evaluation) reportOverridden(r *overriddenRule, f Finding, rules string, whole bool) {
	by := r.on.Ref(r.key.to)
	objects := objectsText(r.on, r.objects)
	paths, on := "", " on "+objects
	if r.paths < ev.overriddenRules.ownPaths {
		paths = fmt.Sprintf(" on %d of %s", r.paths, api.Plural(ev.overriddenRules.ownPaths, "path"))
		on = fmt.Sprintf("%s (%s)", paths, objects)
	}
	overrides, why := precedenceText(r.key.cause, r.key.from, r.key.to, whole)
	if why != "" {
		why = ", since it " + why
	}
	f.Policy = &by
	named := on
	if objects == overrideTarget(r) || objects == by.String() {
		named = paths // it is named anyway
	}
	f.What = fmt.Sprintf("%s no effect%s: %s %s on %s%s", rules, named, by, overrides, overrideTarget(r), why)
	f.Short = fmt.Sprintf("%s no effect%s: %s %s%s", rules, on, by, overrides, why)
	f.Advice = fmt.Sprintf("ask the owner of %s", by.Key())
	if r.key.cause == bySpecific {
		f.Advice = "it applies where no more specific policy replaces it"
	}
	if r.several {
		f.What = fmt.Sprintf("%s no effect on any path: more specific policies take precedence, such as %s on %s", rules, by, overrideTarget(r))
		f.Short = ""
	}
	if r.key.inForce != nil && !r.several {
		last := r.on.Ref(r.key.inForce)
		f.What += fmt.Sprintf(", and %s is in force there", last)
		f.Advice = fmt.Sprintf("ask the owners of %s and %s", by.Key(), last.Key())
	}
	ev.report(api.ReasonOverridden, api.Warn, f)
}

// precedenceText says what the policy in force does to a rule, or to the policy as a
// whole, and what it is, or has, that the other one does not: "is older".
func precedenceText(cause overriddenCause, from, to *merge.Policy, whole bool) (does, why string) {
	does = "takes precedence"
	switch cause {
	case byOrder:
		why = "comes first in the order of the kind"
	case byFilter:
		why = "is attached by an earlier filter"
	case byAge:
		why = "is older"
	case byName:
		why = "is as old and first by name"
	case byYouth:
		why = "is newer"
	case bySection:
		why = "is attached to the section"
	case bySpecific:
		why = "is more specific"
	case byUnset:
		does = "unsets it"
	case byOverride, byItself:
		does = "overrides it"
	}
	if cause == byName && nameOf(from) < nameOf(to) {
		why = "is as old and last by name"
	}
	if whole {
		does = "replaces the policy as a whole"
	}
	return does, why
}

// reportOverriddenOthers reports which rules of other policies lose their effect.
func (ev *evaluation) reportOverriddenOthers() {
	rules := ev.overriddenRules.otherPolicies.sorted()
	whole, shown := countReplacedPolicies(rules), make(map[replacedPolicy]bool)
	lines, rest := 0, 0
	for i, r := range rules {
		group := r.replacedPolicy()
		if n := whole[group]; n > 0 && r.key.whole && !shown[group] && lines < maxOverriddenOthers {
			ev.reportOverriddenOther(r, Finding{ReplacedAsWhole: true}, fmt.Sprintf("all %d rules", n), "lose their effect", "replaces it as a whole")
			shown[group] = true
			lines++
		}
		together := r.key.whole && shown[group]
		switch {
		case i < maxOverriddenOthers:
			ev.reportOverriddenOther(r, Finding{Rule: r.key.rule, ReplacedAsWhole: together}, r.key.rule, "loses its effect", "overrides it")
			lines++
		case !together:
			rest++
		}
	}
	if rest > 0 {
		more := api.Plural(rest, "more rule")
		if ev.overriddenRules.otherPolicies.truncated {
			more = "more than " + more
		}
		ev.report(api.ReasonOverridden, api.Warn, Finding{What: more + " of other policies also lose their effect"})
	}
}

// reportOverriddenOther reports what another policy loses.
func (ev *evaluation) reportOverriddenOther(r *overriddenRule, f Finding, rules, lose, overrides string) {
	from := r.on.Ref(r.key.from)
	f.Policy = &from
	f.What = fmt.Sprintf("%s of %s %s on %s: %s %s", rules, from, lose, api.Plural(r.paths, "path"), r.on.Ref(r.key.to), overrides)
	ev.report(api.ReasonOverridden, api.Warn, f)
}
