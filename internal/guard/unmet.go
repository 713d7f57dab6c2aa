package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// maxUnmet is how many violations of one requirement are reported one by one: a message
// may differ from path to path.
const maxUnmet = 10

// reportUnmet turns the constraints that are violated into findings.
func (ev *evaluation) reportUnmet() {
	all := ev.reportUnbound(slices.SortedFunc(maps.Values(ev.requirements.unmet), compareUnmet))
	for len(all) > 0 {
		same := 1
		for same < len(all) && sameRequirement(all[0], all[same]) {
			same++
		}
		ev.reportRequirement(all[:same])
		all = all[same:]
	}
}

func compareUnmet(a, b *unmetRequirement) int {
	return cmp.Or(
		api.CompareRefs(a.constraint.Ref(), b.constraint.Ref()),
		cmp.Compare(btoi(a.before), btoi(b.before)),
		strings.Compare(a.at, b.at),
		strings.Compare(a.message, b.message),
	)
}

func sameRequirement(a, b *unmetRequirement) bool {
	return a.constraint.Ref() == b.constraint.Ref() && a.at == b.at && a.before == b.before
}

// reportRequirement reports violations of one requirement.
func (ev *evaluation) reportRequirement(all []*unmetRequirement) {
	for i, t := range all {
		ref := t.constraint.Ref()
		f := Finding{Rule: t.rule, Policy: &ref}
		if i == maxUnmet {
			paths := 0
			for _, rest := range all[i:] {
				paths += rest.paths
			}
			f.What = fmt.Sprintf("%s of %s is also not met on %s", t.at, ref, plural(paths, "more path"))
		} else {
			f.What, f.Short = fmt.Sprintf("%s (%s on %s)", t.message, ref, pathsText(t.on, t.paths)), t.message
		}
		action := t.constraint.Enforcement
		switch {
		case !t.before:
			f.Advice = fmt.Sprintf("change what causes it, or ask the owner of %s", ref)
		case action == api.Deny:
			action = api.Warn
			fallthrough
		default:
			f.What += ": existing violation, not made worse by this write"
			if f.Short != "" {
				f.Short += fmt.Sprintf(" (%s): existing violation, not made worse by this write", ref)
			}
		}
		ev.report(api.ReasonRequirementUnmet, action, f)
		if i == maxUnmet {
			return
		}
	}
}

// reportUnbound reports the constraints that do not bind the write and are violated, each
// once, and returns the violations of the others. A constraint of a tenant has as many
// messages as its author likes: they must not take the place of what the writer of
// something above has to know.
func (ev *evaluation) reportUnbound(all []*unmetRequirement) (bound []*unmetRequirement) {
	var at []*unmetRequirement
	for _, t := range all {
		switch {
		case !t.unbound:
			bound = append(bound, t)
			continue
		case len(at) > 0 && at[0].constraint.Ref() != t.constraint.Ref():
			ev.reportOneUnbound(at)
			at = nil
		}
		at = append(at, t)
	}
	if len(at) > 0 {
		ev.reportOneUnbound(at)
	}
	return bound
}

// reportOneUnbound reports a constraint that does not bind the write by its first violation.
func (ev *evaluation) reportOneUnbound(all []*unmetRequirement) {
	first, more := all[0], ""
	ref := first.constraint.Ref()
	f := Finding{Policy: &ref, Unbound: true}
	if !slices.ContainsFunc(all, func(t *unmetRequirement) bool { return t.at != first.at }) {
		f.Rule = first.rule
	}
	if len(all) > 1 {
		more = fmt.Sprintf(", and %d more", len(all)-1)
	}
	f.Short = fmt.Sprintf("%s is not met, but does not apply to this write: %s%s", ref, first.message, more)
	f.What = fmt.Sprintf("%s is not met: %s (on %s)%s: warning only, since the constraint does not apply to writes of %s",
		ref, first.message, pathsText(first.on, first.paths), more, ev.writtenRef())
	if first.before {
		f.What += "; existing violation, not made worse by this write"
	}
	f.Advice = fmt.Sprintf("notify the owner of %s", ref)
	action := first.constraint.Enforcement
	if action == api.Deny {
		action = api.Warn
	}
	ev.report(api.ReasonRequirementUnmet, action, f)
}
