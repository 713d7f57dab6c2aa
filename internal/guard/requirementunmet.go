package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"

	api "overrule.dev/overrule/api/v1alpha1"
)

// reportAll turns the constraints that are violated into findings: those that bind the
// write by requirement, others each once. A constraint of a tenant has as many messages as
// its author likes: they must not take the place of what the writer of something above has to
// know.
func (ev *requirements) reportAll() {
	all := ev.unmet.sorted(compareUnmet)
	for len(all) > 0 {
		same := 1
		for same < len(all) && sameRequirement(all[0], all[same]) {
			same++
		}
		if all[0].notBinding {
			ev.reportNotBinding(all[:same])
		} else {
			ev.reportRequirement(all[:same])
		}
		all = all[same:]
	}
	ev.reportUnevaluated()
}

func compareUnmet(a, b *unmetRequirement) int {
	return cmp.Or(
		cmp.Compare(btoi(a.notBinding), btoi(b.notBinding)),
		api.CompareRefs(a.constraint.Ref(), b.constraint.Ref()),
		cmp.Compare(btoi(a.before), btoi(b.before)),
		cmp.Compare(a.grace, b.grace),
		strings.Compare(a.at, b.at),
		strings.Compare(a.message, b.message),
	)
}

// sameRequirement reports whether two violations are reported together.
func sameRequirement(a, b *unmetRequirement) bool {
	return a.notBinding == b.notBinding && a.constraint.Ref() == b.constraint.Ref() && (a.notBinding || a.at == b.at && a.before == b.before && a.grace == b.grace)
}

// reportRequirement reports violations of one requirement.
func (ev *requirements) reportRequirement(all []*unmetRequirement) {
	ref, action, existing := all[0].constraint.Ref(), all[0].constraint.Enforcement, ""
	f := Finding{Policy: ref}
	switch {
	case all[0].grace == graceRuns:
		action, existing = warnAtMost(action), ": allowed for another "+all[0].graceText()+", the constraint's grace period"
		f.until = all[0].until
		f.Advice = "correct it before that ends"
	case all[0].before && all[0].grace == noGrace:
		action, existing = warnAtMost(action), ": existing violation, not made worse by this write"
	default:
		f.Advice = fmt.Sprintf("change what causes it, or ask the owner of %s", ref)
		switch {
		case all[0].grace == graceOver:
			existing = fmt.Sprintf(": the grace period of %s is over", duration.HumanDuration(all[0].constraint.GracePeriod))
		case ev.deletedWithOwner:
			existing = ": " + ev.ownerCause()
		}
	}
	rest := 0
	for i, u := range all {
		if i >= maxUnmet {
			rest += u.paths
			continue
		}
		on := fmt.Sprintf("%s on %s", ref, pathsText(u.on, u.paths))
		f.Rule, f.What, f.Short = u.rule, fmt.Sprintf("%s (%s)%s", u.message, on, existing), fmt.Sprintf("%s: %s%s", on, u.message, existing)
		ev.report(api.ReasonRequirementUnmet, action, f)
	}
	if rest > 0 {
		f.Rule, f.What, f.Short = all[maxUnmet].rule, fmt.Sprintf("%s of %s is also not met on %s%s", all[0].at, ref, api.Plural(rest, "more path"), existing), ""
		ev.report(api.ReasonRequirementUnmet, action, f)
	}
}

// warnAtMost returns an action, or that of a warning where it is a denial.
func warnAtMost(a api.Action) api.Action {
	if a == api.Deny {
		return api.Warn
	}
	return a
}

// reportNotBinding reports a constraint that does not bind the write by its first violation.
func (ev *requirements) reportNotBinding(all []*unmetRequirement) {
	first, more := all[0], api.More(", and ", len(all)-1, "")
	ref := first.constraint.Ref()
	f := Finding{Policy: ref, NotBinding: true, Rule: first.rule, Advice: fmt.Sprintf("notify the owner of %s", ref)}
	if slices.ContainsFunc(all, func(u *unmetRequirement) bool { return u.at != first.at }) {
		f.Rule = ""
	}
	on, unbound := pathsText(first.on, first.paths), ", but does not apply to this write: "+first.message+more
	f.Short = shortText(fmt.Sprintf("%s is not met on %s%s", ref, on, unbound), fmt.Sprintf("%s is not met%s", ref, unbound))
	f.What = fmt.Sprintf("%s is not met: %s (on %s)%s: warning only, since the constraint does not apply to writes of %s",
		ref, first.message, on, more, ev.writtenRef())
	if first.before {
		f.What += "; existing violation, not made worse by this write"
	}
	ev.report(api.ReasonRequirementUnmet, warnAtMost(first.constraint.Enforcement), f)
}

// reportUnevaluated warns that constraints which do not bind the write were not evaluated
// on all paths, and names the one that cost the most.
func (ev *requirements) reportUnevaluated() {
	m := &ev.notBindingCost
	if m.spent <= maxWarnCost {
		return
	}
	costliest := slices.MaxFunc(slices.SortedFunc(maps.Keys(m.costs), api.CompareRefs),
		func(a, b api.Ref) int { return cmp.Compare(m.costs[a], m.costs[b]) })
	ev.warn(api.ReasonNotRead, Finding{Policy: costliest, Advice: fmt.Sprintf("ask the owner of %s to simplify it", costliest.Key())},
		"%s, which does not apply to this write, was not evaluated on all paths: it costs too much", costliest)
}
