package schema_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/schema"
	"overrule.dev/overrule/test/worlds"
)

// A budget is asked only where there is something to check.
func TestSeparableSchemasAreNotChecked(t *testing.T) {
	limits := func(of, at string) string {
		return specWith("  a: {type: string}\n  b: {type: string}\n  defaults: {type: object}\n  overrides: {type: object}\n"+
			"  limits: {type: object, "+at+"additionalProperties: {type: object, properties: {x: {type: integer}, z: {type: integer}}"+of+"}}\n", "%s")
	}
	plain := limits("", "")
	with := func(schema, more string) string { return fmt.Sprintf(schema, more) }
	rule := func(text string) string {
		return fmt.Sprintf("x-kubernetes-validations: [{rule: %q}]", text)
	}
	for name, c := range map[string]struct {
		profile, schema string
		checked         bool
	}{
		"a map of named limits":            {named, with(plain, ""), false},
		"a map with a maximum":             {named, with(limits("", "maxProperties: 5, "), ""), true},
		"what a limit asks of itself":      {named, with(limits(", required: [x], maxProperties: 1, oneOf: [{required: [x]}, {required: [z]}]", ""), ""), false},
		"the same, where leaves are rules": {"", with(limits(", required: [x], maxProperties: 1, oneOf: [{required: [x]}, {required: [z]}]", ""), ""), true},
		"a rule in CEL of a limit":         {named, with(limits(`, `+rule("self.x > self.z"), ""), ""), false},
		"the same, where leaves are":       {"", with(limits(`, `+rule("self.x > self.z"), ""), ""), true},
		"a rule about blocks":              {named, with(plain, rule("!(has(self.defaults) && has(self.overrides))")), false},
		"a rule that bare rules exclude blocks, one by one": {
			named, with(plain, `x-kubernetes-validations: [{rule: "!(has(self.defaults) && has(self.limits))"}, {rule: "!(has(self.overrides) && has(self.a))"}]`), false,
		},
		"a rule about the target":               {named, with(plain, rule("self.targetRefs.all(t, t.kind == 'HTTPRoute' || self.targetRefs.size() == 1)")), false},
		"a rule about one rule":                 {named, with(plain, rule("self.a != 'self.b' && self.a.size() < 5")), false},
		"a rule about two":                      {named, with(plain, rule("self.a != self.b")), true},
		"a rule about all limits":               {named, with(plain, rule("self.limits.all(k, self.limits[k].x < 5)")), true},
		"a rule about self as a whole":          {named, with(plain, rule("self == self")), true},
		"a rule that asks for fields by name":   {named, with(plain, rule("self['a'] != ''")), true},
		"a rule about a field that CEL escapes": {named, with(plain, rule("self.__if__ != ''")), true},
		"an any-of about the target":            {named, with(plain, "anyOf: [{required: [targetRefs]}, {not: {required: [defaults]}}]"), false},
		"an any-of about two rules":             {named, with(plain, "anyOf: [{required: [targetRefs]}, {not: {required: [a]}}, {allOf: [{required: [b]}]}]"), true},
		"an any-of about a count":               {named, with(plain, "anyOf: [{required: [targetRefs]}, {minProperties: 2}]"), true},
		"an all-of about a map":                 {named, with(plain, "allOf: [{properties: {limits: {maxProperties: 2}}}]"), true},
		"an all-of about a rule":                {named, with(plain, "allOf: [{properties: {a: {maxLength: 2}}}]"), false},
		"a not about two rules":                 {named, with(plain, "not: {required: [a, b]}"), true},
		"a not about one":                       {named, with(plain, "not: {required: [a]}"), false},
		"what items of a list that is one value ask": {"", "type: object\nproperties:\n  limits: {type: object, additionalProperties: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n" +
			"  all: {type: array, maxItems: 2, items: {type: object, required: [x], properties: {x: {type: object, properties: {p: {type: string}, q: {type: string}}, " + rule("self.p != self.q") + "}}, " + rule("self.x.p == self.x.q") + "}}", false},
		"what a field of the target asks": {"", "type: object\nproperties:\n  limits: {type: object, additionalProperties: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n" +
			"  targetRefs: {type: array, items: {type: object, properties: {p: {type: string}, q: {type: string}}, required: [p, q], " + rule("self.p != self.q") + "}}", false},
		"a strategy that blocks have to name": {
			worlds.ProfileDoc("Paint", "blocks: {defaults: [defaults]}\nstrategy: {field: strategy, bareField: strategy, allowed: [merge]}\nrules: [limits.*]"),
			"type: object\nproperties: {defaults: {type: object, required: [strategy], properties: {strategy: {type: string}, limits: {type: object, additionalProperties: {type: object}}}}, " +
				"limits: {type: object, additionalProperties: {type: object}}}", false,
		},
		"a required rule": {named, "type: object\nrequired: [a]\nproperties: {a: {type: string}, limits: {type: object, additionalProperties: {type: object}}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			e := only(t, newView(t, c.profile, c.schema, "defaults: {strategy: "+map[bool]string{true: "patch", false: "merge"}[c.profile == ""]+", limits: {one: {x: 1, z: 0}}}", "limits: {two: {x: 1, z: 0}}"))
			_, err := schema.NewChecker(true).Check(e, expired(t))
			assert.Equal(t, c.checked, errors.Is(err, effective.ErrTooMuch))
			v, err := schema.NewChecker(true).Check(e, unlimited())
			require.NoError(t, err)
			assert.Empty(t, v.Unchecked)
		})
	}
}
