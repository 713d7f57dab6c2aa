package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/snapshot"
)

// A constraint that does not bind the write is reported once, and after all else.
func TestUnboundConstraintIsReportedOnceAndLast(t *testing.T) {
	many := "validations:"
	for i := range 12 {
		many += fmt.Sprintf("\n- {expression: 'path.route.name == \"x%d\" || origins.size() == 0', message: 'see example.com/%d'}", i, i)
	}
	const last = " (on HTTPRoute app/r rule-1 of Gateway infra/g and 1 more path), and 11 more: warning only, since the constraint does not apply to writes of Paint infra/top"
	for name, c := range map[string]struct {
		constraint, before string
		want               string
	}{
		"new":                 {many, "", "Warn RequirementUnmet: PolicyConstraint app/c is not met: see example.com/0" + last + "; notify the owner of PolicyConstraint app/c"},
		"it was so before":    {many, gatewayPolicy("defaults: {a: 2}"), "Warn RequirementUnmet: PolicyConstraint app/c is not met: see example.com/0" + last + "; existing violation, not made worse by this write; notify the owner of PolicyConstraint app/c"},
		"one of a rule":       {"rules: [{path: b, required: true}]", gatewayPolicy("defaults: {a: 2}"), "Warn RequirementUnmet: PolicyConstraint app/c is not met: b is missing" + strings.Replace(last, ", and 11 more", "", 1) + "; existing violation, not made worse by this write; notify the owner of PolicyConstraint app/c"},
		"it is for the audit": {"enforcement: Audit\n" + many, "", "Audit RequirementUnmet: PolicyConstraint app/c is not met: see example.com/0" + last + "; notify the owner of PolicyConstraint app/c"},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, base()).With(snapshot.Put(constraintIn(t, "app", c.constraint)))
			if c.before != "" {
				v = v.With(put(t, v, c.before))
			}
			got := messages(evaluate(t, v, gatewayPolicy("defaults: {a: 1}")))
			require.Len(t, got, 2)
			assert.Equal(t, []string{"Warn BlastRadius: Paint infra/top: effective policy of Paint changes on 2 paths in 1 namespace"}, got[:1])
			assert.Equal(t, c.want, got[1])
		})
	}
}
