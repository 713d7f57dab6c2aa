package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// reportUnmet turns the constraints that are violated into findings.
func (ev *evaluation) reportUnmet() {
	all := ev.reportNotBinding(slices.SortedFunc(maps.Values(ev.requirements.unmet), compareUnmet))
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
		api.CompareRefs(a.key.constraint.Ref(), b.key.constraint.Ref()),
		cmp.Compare(btoi(a.key.before), btoi(b.key.before)),
		strings.Compare(a.key.at, b.key.at),
		strings.Compare(a.key.message, b.key.message),
	)
}

func sameRequirement(a, b *unmetRequirement) bool {
	return a.key.constraint.Ref() == b.key.constraint.Ref() && a.key.at == b.key.at && a.key.before == b.key.before
}

// reportRequirement reports violations of one requirement.
func (ev *evaluation) reportRequirement(all []*unmetRequirement) {
	for i, u := range all {
		ref := u.key.constraint.Ref()
		f := Finding{Rule: u.rule, Policy: &ref}
		if i == maxUnmet {
			paths := 0
			for _, rest := range all[i:] {
				paths += rest.paths
			}
			f.What = fmt.Sprintf("%s of %s is also not met on %s", u.key.at, ref, api.Plural(paths, "more path"))
		} else {
			on := fmt.Sprintf("%s on %s", ref, pathsText(u.on, u.paths))
			f.What, f.Short = fmt.Sprintf("%s (%s)", u.key.message, on), fmt.Sprintf("%s: %s", on, u.key.message)
		}
		action := u.key.constraint.Enforcement
		switch {
		case !u.key.before:
			f.Advice = fmt.Sprintf("change what causes it, or ask the owner of %s", ref)
		case action == api.Deny:
			action = api.Warn
			fallthrough
		default:
			const existing = ": existing violation, not made worse by this write"
			f.What += existing
			if f.Short != "" {
				f.Short += existing
			}
		}
		ev.report(api.ReasonRequirementUnmet, action, f)
		if i == maxUnmet {
			return
		}
	}
}

// reportNotBinding reports the constraints that do not bind the write and are violated, each
// once, and returns the violations of the others. A constraint of a tenant has as many
// messages as its author likes: they must not take the place of what the writer of
// something above has to know.
func (ev *evaluation) reportNotBinding(all []*unmetRequirement) (bound []*unmetRequirement) {
	var at []*unmetRequirement
	for _, u := range all {
		switch {
		case !u.key.notBinding:
			bound = append(bound, u)
			continue
		case len(at) > 0 && at[0].key.constraint.Ref() != u.key.constraint.Ref():
			ev.reportOneNotBinding(at)
			at = nil
		}
		at = append(at, u)
	}
	if len(at) > 0 {
		ev.reportOneNotBinding(at)
	}
	return bound
}

// reportOneNotBinding reports a constraint that does not bind the write by its first violation.
func (ev *evaluation) reportOneNotBinding(all []*unmetRequirement) {
	first, more := all[0], ""
	ref := first.key.constraint.Ref()
	f := Finding{Policy: &ref, NotBinding: true}
	if !slices.ContainsFunc(all, func(u *unmetRequirement) bool { return u.key.at != first.key.at }) {
		f.Rule = first.rule
	}
	if len(all) > 1 {
		more = fmt.Sprintf(", and %d more", len(all)-1)
	}
	f.Short = fmt.Sprintf("%s is not met, but does not apply to this write: %s%s", ref, first.key.message, more)
	f.What = fmt.Sprintf("%s is not met: %s (on %s)%s: warning only, since the constraint does not apply to writes of %s",
		ref, first.key.message, pathsText(first.on, first.paths), more, ev.writtenRef())
	if first.key.before {
		f.What += "; existing violation, not made worse by this write"
	}
	f.Advice = fmt.Sprintf("notify the owner of %s", ref)
	action := first.key.constraint.Enforcement
	if action == api.Deny {
		action = api.Warn
	}
	ev.report(api.ReasonRequirementUnmet, action, f)
}
