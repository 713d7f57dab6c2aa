package guard_test

import (
	"fmt"
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
	for name, c := range map[string]struct {
		constraint, before string
		want               string
	}{
		"new":                 {many, "", "Warn RequirementUnmet PolicyConstraint app/c: example.com/0, HTTPRoute app/r rule-1, Gateway infra/g, 1, 11, Paint infra/top"},
		"it was so before":    {many, gatewayPolicy("defaults: {a: 2}"), "Warn RequirementUnmet PolicyConstraint app/c: example.com/0, HTTPRoute app/r rule-1, Gateway infra/g, 1, 11, Paint infra/top"},
		"one of a rule":       {"rules: [{path: b, required: true}]", gatewayPolicy("defaults: {a: 2}"), "Warn RequirementUnmet b PolicyConstraint app/c: HTTPRoute app/r rule-1, Gateway infra/g, 1, Paint infra/top"},
		"it is for the audit": {"enforcement: Audit\n" + many, "", "Audit RequirementUnmet PolicyConstraint app/c: example.com/0, HTTPRoute app/r rule-1, Gateway infra/g, 1, 11, Paint infra/top"},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, base()).With(snapshot.Put(constraintIn(t, "app", c.constraint)))
			if c.before != "" {
				v = v.With(put(t, v, c.before))
			}
			got := findings(t, evaluate(t, v, gatewayPolicy("defaults: {a: 1}")))
			require.Len(t, got, 2)
			assert.Equal(t, []string{"Warn BlastRadius: Paint infra/top, Paint, 2 paths, 1 namespace"}, got[:1])
			assert.Equal(t, c.want, got[1])
		})
	}
}
