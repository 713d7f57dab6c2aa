package guard

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// checkUnset reports rules that the policy that is written newly unsets although an
// override of a higher policy sets them.
func (ev *evaluation) checkUnset(p effective.Pair, o *merge.Outcome) {
	if len(o.Policy.Unset) == 0 {
		return
	}
	var was map[unsetRule]bool
	if ev.old != nil && p.Before != nil {
		was = unsetRules(p.Before, &ev.old.Policy)
	}
	for u := range unsetRules(p.After, o.Policy) {
		action := api.Deny
		if was[u] {
			action = api.Warn
		}
		by := u.by
		ev.report(api.ReasonUnsetOverride, action, Finding{
			Rule: u.rule, Policy: &by,
			What:   fmt.Sprintf("unset %s has no effect: the overrides of %s set it", u.rule, by),
			Advice: fmt.Sprintf("remove it from the list, or ask the owner of %s", by.Key()),
		})
	}
}

type unsetRule struct {
	rule string
	by   api.Ref
}

// unsetRules returns the rules that p unsets and an override above it sets,
// on a path that p is on.
func unsetRules(e *effective.Effective, p *merge.Policy) map[unsetRule]bool {
	out := make(map[unsetRule]bool)
	unset := merge.NewNames(p.Unset)
	for i := range max(outcomeOf(e, p), 0) { // those behind it are lower
		q := &e.Outcomes[i]
		for _, b := range q.Policy.Blocks {
			if !q.AppliedAs(b.Block, merge.Overrides) {
				continue
			}
			for _, r := range b.Rules {
				if unset.Match(r.Key) {
					out[unsetRule{r.Key.String(), e.Ref(q.Policy)}] = true
				}
			}
		}
	}
	return out
}
