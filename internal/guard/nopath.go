package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
)

// mostPathless is how many targets without a path are named: a selector can have
// thousands.
const mostPathless = 8

// noPath warns that the policy being written is in force nowhere, though its
// targets exist: no path goes through any of them.
func (j *judge) noPath() {
	if j.policy == nil || j.policy.Invalid != nil || j.policy.Unread != "" || j.ownPaths > 0 {
		return
	}
	targets := slices.DeleteFunc(effective.Targets(j.after, j.policy), func(t api.Target) bool {
		return !t.Accepted || effective.NoLevelReason(j.policy, t) != "" // those have their own reasons
	})
	for _, t := range targets[:min(len(targets), mostPathless)] {
		why, advice := effective.NoPath(j.after, j.policy, t)
		j.report(api.ReasonNoPath, api.Warn, Finding{
			What: "the policy has no effect: " + why, Advice: advice, Short: "no effect: " + why,
		})
	}
	if more := len(targets) - mostPathless; more > 0 {
		j.report(api.ReasonNoPath, api.Warn, Finding{What: fmt.Sprintf("the policy has no effect on %s either", plural(more, "more target"))})
	}
}
