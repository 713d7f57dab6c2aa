package guard

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// reportConstraintViolated reports a rule that a conditional override replaces or removes.
func (ev *evaluation) reportConstraintViolated(r *overriddenRule) {
	action := api.Deny
	if r.key.before {
		action = api.Warn
	}
	by := r.on.Ref(r.key.to)
	ev.report(api.ReasonConstraintViolated, action, Finding{
		Rule: r.key.rule, Policy: &by,
		What: fmt.Sprintf("%s: Invalid value: %s: not allowed by %s on %s (when: %s): %s",
			r.key.rule, compactJSON(r.lost.Value), by, overrideTarget(r), overrideCondition(r), ev.replacementText(r)),
		Short:  fmt.Sprintf("%s is not allowed by %s", r.key.rule, by),
		Advice: fmt.Sprintf("change it or ask the owner of %s", by.Key()),
	})
}

// overrideCondition returns the condition of the overrides block that beat the rule.
func overrideCondition(r *overriddenRule) string {
	for _, b := range r.key.to.Blocks {
		if b.Block == merge.Overrides && b.When != nil {
			return b.When.String()
		}
	}
	return ""
}

// replacementText says what is in force in place of the lost rule: the value that the
// override sets, and of a policy that overrides that one its name alone.
func (ev *evaluation) replacementText(r *overriddenRule) string {
	for _, e := range r.on.Rules {
		if e.Key == r.lost.Key && e.Value != nil {
			if e.From.Policy != r.key.to && !ev.guard.ReadsAll {
				return "it would be replaced by the value of " + r.on.Ref(e.From.Policy).String()
			}
			return "it would be replaced by " + compactJSON(e.Value)
		}
	}
	return "it would be removed"
}
