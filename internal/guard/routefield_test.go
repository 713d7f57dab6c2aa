package guard_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/worlds"
)

// A route's own field that an override replaces is a rule that loses its
// effect, for every writer (SEMANTICS section 8, Overridden).
func TestOverriddenRouteFields(t *testing.T) {
	profile := worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs]}\nblocks: {overrides: [overrides]}\n"+
		"strategy: {allowed: [merge]}\nfields: [{rule: timeout, route: 'spec.rules[*].timeouts.request'}]")
	const capped = "targetRefs: [{kind: Gateway, name: g}]\noverrides: {timeout: 5s}"
	base := docs(profile, gatewayDoc("g", "c", "http"))
	route := func(timeout string) string { return routeDoc("r", "[{timeouts: {request: "+timeout+"}}]", "g") }
	lost := "Warn Overridden timeout HTTPRoute app/r: 1 path, Probe infra/p"

	with := docs(base, policyDoc("Probe", "infra", "p", capped))
	assert.Equal(t, []string{"Warn BlastRadius: HTTPRoute app/r, Probe infra/p", lost},
		findings(t, evaluate(t, world(t, with), route("9s"))), "a new route")
	v := world(t, docs(with, route("9s")))
	assert.Equal(t, []string{lost}, findings(t, evaluate(t, v, route("8s"))), "another value")
	assert.Empty(t, findings(t, evaluate(t, v, route("9s"))), "the same value was lost before")
	assert.Equal(t, []string{lost}, findings(t, evaluate(t, v, route("5s"))), "an equal value is lost alike, lest a dry run confirms a guess")
	assert.Contains(t, findings(t, evaluate(t, world(t, docs(base, route("9s"))), policyDoc("Probe", "infra", "p", capped))), lost, "a new override")
	assert.NotContains(t, findings(t, evaluate(t, world(t, docs(base, route("9s"))), policyDoc("Probe", "infra", "p",
		"targetRefs: [{kind: Gateway, name: g}]\ntimeout: 5s"))), lost, "a default gives way to it")
}

// A policy that its kind has no level for is stored, and its writer is warned.
func TestPolicyWithoutLevel(t *testing.T) {
	v := world(t, docs(worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs]}\nlevels: [Gateway, Route]"), gatewayDoc("g", "c", "http"), routeDoc("r", "[{}]", "g")))
	assert.Equal(t, []string{"Warn NotRead: Probe, Gateway infra/g, http, Gateway, Route"},
		findings(t, evaluate(t, v, policyDoc("Probe", "infra", "p", "targetRefs: [{kind: Gateway, name: g, sectionName: http}]\na: 1"))))
	assert.Equal(t, []string{"Warn BlastRadius"}, codes(t, evaluate(t, v, policyDoc("Probe", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\na: 1"))))
	t.Run("a level for its sections is none for the whole", func(t *testing.T) {
		v := world(t, docs(worlds.ProfileDoc("Probe", "levels: [Listener, Rule]"), gatewayDoc("g", "c", "http"), routeDoc("r", "[{}]", "g")))
		assert.Equal(t, []string{"Warn NotRead: Probe, Gateway infra/g, Listener, Rule"},
			findings(t, evaluate(t, v, policyDoc("Probe", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\na: 1"))))
		assert.Equal(t, []string{"Warn NotRead: Probe, HTTPRoute app/r, Listener, Rule"},
			findings(t, evaluate(t, v, policyDoc("Probe", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 1"))))
		assert.Empty(t, findings(t, evaluate(t, v, policyDoc("Probe", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}]\na: 1"))))
	})
}
