package constraint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/constraint"
)

func TestRelaxes(t *testing.T) {
	const spec = "rules: [{path: a, max: 1}]\nvalidations: [{expression: has(effective.a)}]"
	for name, c := range map[string]struct {
		was, now string // now is "" where it is deleted
		want     bool
	}{
		"it is deleted":                      {spec, "", true},
		"the same":                           {spec, spec, false},
		"it only warns":                      {spec, spec + "\nenforcement: Warn", true},
		"it only warned before":              {spec + "\nenforcement: Warn", "", false},
		"it could not be used before":        {"rules: [{path: a}]", "", false},
		"it cannot be used any more":         {spec, "rules: [{path: a}]", true},
		"it is of another kind":              {spec, spec + "\npolicyKind: {group: example.com, kind: Dye}", true},
		"it has a target":                    {spec, spec + "\ntargets: [{kind: Gateway, name: g}]", true},
		"a rule is missing":                  {spec, "validations: [{expression: has(effective.a)}]", true},
		"a validation is missing":            {spec, "rules: [{path: a, max: 1}]", true},
		"another expression of a validation": {spec, "rules: [{path: a, max: 1}]\nvalidations: [{expression: 'true'}]", true},
		"a bound is another":                 {spec, "rules: [{path: a, max: 2}]\nvalidations: [{expression: has(effective.a)}]", true},
		"a rule and a validation more":       {spec, "rules: [{path: b, max: 1}, {path: a, max: 1}]\nvalidations: [{expression: 'true'}, {expression: has(effective.a)}]", false},
		"the messages are others":            {spec, "rules: [{path: a, max: 1, message: no}]\nvalidations: [{expression: has(effective.a), message: no}]", false},
		"its grace period is longer":         {spec + "\ngracePeriod: 5m", spec + "\ngracePeriod: 1h", true},
		"its grace period is shorter":        {spec + "\ngracePeriod: 1h", spec + "\ngracePeriod: 5m", false},
		"it denies what it warned of before": {spec + "\nenforcement: Warn", spec, false},
	} {
		t.Run(name, func(t *testing.T) {
			var now *constraint.Constraint
			if c.now != "" {
				now = cluster(t, c.now)
			}
			assert.Equal(t, c.want, cluster(t, c.was).Relaxes(now))
		})
	}
}
