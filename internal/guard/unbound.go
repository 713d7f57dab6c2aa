package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

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
