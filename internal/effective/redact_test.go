package effective_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/worlds"
)

// The answers to a developer are the same whatever VALUE is, which it is not allowed to get,
// also where its own policy has the same value. Random worlds have no such objects.
func TestHiddenValuesDoNotChangeAnswers(t *testing.T) {
	const (
		fields = "strategy: {allowed: [patch, merge]}\nblocks: {defaults: [defaults], overrides: [overrides]}\nfields: [{rule: b, route: 'spec.rules[*].retry.timeouts'}]"
		older  = "metadata: {namespace: infra, name: x-VALUE, creationTimestamp: '2020-01-01T00:00:00Z'}"
	)
	var (
		top = func(kind, spec string) string {
			return policyDoc(kind, "infra", "top", "targetRefs: [{kind: Gateway, name: g}]\n"+spec)
		}
		own = func(kind, spec string) string {
			return policyDoc(kind, "app", "own", "targetRefs: [{kind: HTTPRoute, name: r}]\n"+spec)
		}
		when  = func(condition string) string { return "overrides: {strategy: patch, when: '" + condition + "', a: 1}" }
		limit = "limits: {x: {rates: [{limit: 5, unit: second}], triggers: [{matches: [{path: {value: /VALUE}}], hostnames: [VALUE.example]}]}}"
	)
	for name, c := range map[string]struct {
		world []string
		rule  string // of the route
		// has is a part of the answers.
		has string
	}{
		"a value that overrides an equal one": {[]string{top("Paint", "overrides: {strategy: patch, b: VALUE}"), own("Paint", "strategy: patch\nb: other")}, "", `"rule":"b","block":"bare"`},
		"a rule with a key of its own": {[]string{
			worlds.ProfileDoc("Keyed", "strategy: {allowed: [merge]}\ngroups: [{rules: [b], key: .}]"), top("Keyed", "b: {x: VALUE}"), own("Keyed", "b: {x: other}"),
		}, "", `"rule":"b[\"infra/top\"]","from":{"group":"example.com","kind":"Keyed","namespace":"infra","name":"top"},"block":"bare","redacted":true}`},
		"an item of a collected list": {[]string{
			worlds.ProfileDoc("Listed", "strategy: {allowed: [merge]}\nsameTarget: collect"), top("Listed", "b: VALUE"), own("Listed", "b: other"),
		}, "", `"spec":[{},{"b":"other"`},
		"a field that two kinds set": {[]string{
			worlds.ProfileDoc("First", fields), worlds.ProfileDoc("Second", fields), top("First", "b: {request: VALUE}"), own("Second", "b: {request: other}"),
		}, "", `"conflictsWith":[{"group":"example.com","kind":"First"}]`},
		"a field that a direct kind sets, too": {[]string{
			worlds.ClassProfileDoc("direct", "First", "targets: {fields: [targetRefs]}\nfields: [{rule: b, route: 'spec.rules[*].retry.timeouts'}]"),
			worlds.ProfileDoc("Second", fields), own("First", "b: {request: other}"), top("Second", "b: {request: VALUE}"),
		}, "", `"timeouts":{"request":"other"}`},
		"a field that is unset": {[]string{
			worlds.ProfileDoc("First", fields), top("First", "overrides: {strategy: patch, b: {backend: VALUE, request: null}}"), own("First", "b: {zone: other}"),
		}, "retry: {timeouts: {request: 1s, backend: 1s}}", `"rule":"b","from":{"group":"example.com","kind":"First","namespace":"infra","name":"top"},"block":"overrides","redacted":true`},
		"a field that the route does not have": {[]string{worlds.ProfileDoc("First", fields), top("First", "overrides: {strategy: patch, b: VALUE}")}, "", `"field":"spec.rules[0].retry.timeouts"`},
		"a name in a condition":                {[]string{top("Paint", when("spec.fVALUE > 1")), own("Paint", "strategy: patch\nb: 1")}, "", "refers to a field that is not set"},
		"an error of a condition":              {[]string{top("Paint", when(`int("VALUE") > 5`))}, "", `overrides of Paint infra/top cannot be evaluated, so the block applies"]`},
		"why a policy is invalid": {[]string{
			freeProbe("blocks: {overrides: [overrides], when: when}"),
			policyDoc("Probe", "infra", "top", "targetRefs: [{kind: HTTPRoute, namespace: app, name: r}]\noverrides: {when: 'VALUE(', a: 1}"),
		}, "", "the reason is not shown"},
		"another target":         {[]string{policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: g}, {kind: Gateway, name: x-VALUE}]\na: 1")}, "", `"targets":[],"redacted":true`},
		"what a limit binds to":  {[]string{worlds.ProfileDoc("Rate", "rules: [limits.*]\nbinding: {rules: limits.*, version: v2}"), top("Rate", limit)}, "", `"state":"Unmatched","redacted":true`},
		"who takes the requests": {[]string{strings.Replace(worlds.RouteTo("HTTPRoute", "infra", "x-VALUE", "[{}]", worlds.ToGateway("g")), "metadata: {namespace: infra, name: x-VALUE}", older, 1), own("Paint", "a: 1")}, "", `"message":"no request reaches its paths"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := docs(append(c.world, gatewayDoc("g", "c", "http"), routeDoc("r", "[{"+c.rule+"}]", "g"))...)
			answers := func(value string) string {
				v, out := world(t, strings.ReplaceAll(text, "VALUE", value)), ""
				for _, ref := range []api.Ref{routeRef("r"), paintRef("app", "own")} {
					for _, q := range questions(t) {
						if v.Get(ref) != nil {
							answer, _ := answerOf(t, v, ref, q)
							out += answer
						}
					}
				}
				return out
			}
			secret := answers("secret")
			assert.NotContains(t, secret, "secret")
			assert.Contains(t, secret, c.has)
			for _, value := range []string{"other", "null"} {
				assert.Equal(t, secret, answers(value), value)
			}
		})
	}
}
