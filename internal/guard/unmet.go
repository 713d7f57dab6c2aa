package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// mostUnmet is how many violations of one demand are told one by one: a message
// may differ from path to path.
const mostUnmet = 10

// unmet turns the constraints that are violated into findings.
func (j *judge) unmet() {
	all := j.reportUnbound(slices.SortedFunc(maps.Values(j.needs.unmet), compareUnmet))
	for len(all) > 0 {
		same := 1
		for same < len(all) && sameDemand(all[0], all[same]) {
			same++
		}
		j.tell(all[:same])
		all = all[same:]
	}
}

func compareUnmet(a, b *unmetTally) int {
	return cmp.Or(
		api.CompareRefs(a.constraint.Ref(), b.constraint.Ref()),
		cmp.Compare(btoi(a.before), btoi(b.before)),
		strings.Compare(a.at, b.at),
		strings.Compare(a.message, b.message),
	)
}

func sameDemand(a, b *unmetTally) bool {
	return a.constraint.Ref() == b.constraint.Ref() && a.at == b.at && a.before == b.before
}

// tell reports violations of one demand.
func (j *judge) tell(all []*unmetTally) {
	for i, t := range all {
		ref := t.constraint.Ref()
		f := Finding{Rule: t.rule, Policy: &ref}
		if i == mostUnmet {
			paths := 0
			for _, rest := range all[i:] {
				paths += rest.paths
			}
			f.What = fmt.Sprintf("%s of %s is not met on %s, either", t.at, ref, plural(paths, "more path"))
		} else {
			f.What, f.Short = fmt.Sprintf("%s (%s on %s)", t.message, ref, somePaths(t.on, t.paths)), t.message
		}
		action := t.constraint.Enforcement
		switch {
		case !t.before:
			f.Advice = fmt.Sprintf("change what leads to it, or ask the owner of %s", ref)
		case action == api.Deny:
			action = api.Warn
			fallthrough
		default:
			f.What += ": it was so before, and gets no worse"
			if f.Short != "" {
				f.Short += fmt.Sprintf(" (%s): it was so before, and gets no worse", ref)
			}
		}
		j.report(api.ReasonRequirementUnmet, action, f)
		if i == mostUnmet {
			return
		}
	}
}

// reportUnbound reports the constraints that do not bind the write and are violated, each
// once, and returns the violations of the others. A constraint of a tenant has as many
// messages as its author likes: they must not take the place of what the writer of
// something above has to know.
func (j *judge) reportUnbound(all []*unmetTally) (bound []*unmetTally) {
	var at []*unmetTally
	for _, t := range all {
		switch {
		case !t.above:
			bound = append(bound, t)
			continue
		case len(at) > 0 && at[0].constraint.Ref() != t.constraint.Ref():
			j.reportOneUnbound(at)
			at = nil
		}
		at = append(at, t)
	}
	if len(at) > 0 {
		j.reportOneUnbound(at)
	}
	return bound
}

// reportOneUnbound reports a constraint that does not bind the write by its first violation.
func (j *judge) reportOneUnbound(all []*unmetTally) {
	first, more := all[0], ""
	ref := first.constraint.Ref()
	f := Finding{Policy: &ref, Unbound: true}
	if !slices.ContainsFunc(all, func(t *unmetTally) bool { return t.at != first.at }) {
		f.Rule = first.rule
	}
	if len(all) > 1 {
		more = fmt.Sprintf(", and %d more", len(all)-1)
	}
	f.Short = fmt.Sprintf("%s is not met, and does not bind this write: %s%s", ref, first.message, more)
	f.What = fmt.Sprintf("%s is not met: %s (on %s)%s: it is no more than a warning, since the constraint does not bind writes of %s",
		ref, first.message, somePaths(first.on, first.paths), more, j.writtenRef())
	if first.before {
		f.What += "; it was so before, and gets no worse"
	}
	f.Advice = fmt.Sprintf("tell the owner of %s", ref)
	action := first.constraint.Enforcement
	if action == api.Deny {
		action = api.Warn
	}
	j.report(api.ReasonRequirementUnmet, action, f)
}
