package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/worlds"
)

// granted is a world whose Paints may target by a ReferenceGrant: app/own is on
// a Service and a gateway of other namespaces.
func granted(more ...string) string {
	return base(append([]string{
		worlds.ProfileDoc("Probe", "strategy: {allowed: [merge]}\nsameTarget: none\nlevels: [Gateway, Route, Backend]\nshortPaths: true"),
		worlds.ClassProfileDoc("inherited", "Paint", "targets: {fields: [targetRefs], namespaces: referenceGrant}\nstrategy: {allowed: [merge]}"),
		policyDoc("Paint", "app", "own", "targetRefs: [{kind: Gateway, name: g, namespace: infra}]\na: 1"),
	}, more...)...)
}

const (
	paints   = "{group: example.com, kind: Paint, namespace: app}"
	gateways = "{group: gateway.networking.k8s.io, kind: Gateway}"
)

// Users who remove a ReferenceGrant are warned which policies lose a target.
func TestReferenceGrants(t *testing.T) {
	grant := worlds.GrantDoc("infra", "t", paints, gateways)
	selecting := policyDoc("Paint", "app", "selecting", "targetRefs: [{kind: Gateway, selector: {}, namespaces: {from: All}}]\nb: 1")
	t.Run("deleted", func(t *testing.T) {
		v := world(t, granted(grant))
		assert.Equal(t, []string{
			"Warn TargetNotFound Paint app/own: ReferenceGrant, Paint, Gateway infra/g",
			"Warn BlastRadius: ReferenceGrant infra/t, Paint, 2 paths, 1 namespace, 2, a",
		}, findings(t, deleted(t, v, read(t, v, grant).Ref())))
	})
	t.Run("edited, with a policy that selects", func(t *testing.T) {
		v := world(t, granted(grant, selecting))
		assert.Equal(t, []string{
			"Warn TargetNotFound Paint app/own: ReferenceGrant, Paint, Gateway infra/g", "Warn TargetNotFound Paint app/selecting: ReferenceGrant, Paint, Gateway infra/g",
			"Warn BlastRadius: ReferenceGrant infra/t, Paint, 2 paths, 1 namespace, 2, a, 2, b",
		}, findings(t, evaluate(t, v, worlds.GrantDoc("infra", "t", "{group: example.com, kind: Paint, namespace: other}", gateways))))
	})
	t.Run("while another one stands", func(t *testing.T) {
		v := world(t, granted(grant, worlds.GrantDoc("infra", "u", paints, gateways)))
		assert.Empty(t, findings(t, deleted(t, v, read(t, v, grant).Ref())))
	})
	t.Run("that let no one in", func(t *testing.T) {
		other := worlds.GrantDoc("infra", "other", paints, "{group: gateway.networking.k8s.io, kind: Gateway, name: h}")
		v := world(t, granted(grant, other))
		assert.Empty(t, findings(t, deleted(t, v, read(t, v, other).Ref())))
	})
	t.Run("made, it lets a policy in", func(t *testing.T) {
		assert.Equal(t, []string{"Warn BlastRadius: ReferenceGrant infra/t, Paint, 2 paths, 1 namespace"},
			findings(t, evaluate(t, world(t, granted()), grant)))
	})
	t.Run("a policy without one is warned of", func(t *testing.T) {
		assert.Equal(t, []string{
			"Warn TargetNotFound: ReferenceGrant, Paint, Gateway infra/g",
		}, findings(t, evaluate(t, world(t, granted()), policyDoc("Paint", "app", "own", "targetRefs: [{kind: Gateway, name: g, namespace: infra}]\na: 2"))))
	})
}

// A ListenerSet that its gateway does not admit has no effect.
func TestListenerSetsNotAllowed(t *testing.T) {
	closed := strings.Replace(base(), "from: All", "from: None", 1)
	set := worlds.SetDoc("app", "s", "g", "http")
	const want = "Warn TargetNotFound: ListenerSet app/s, allowedListeners, Gateway infra/g"
	assert.Equal(t, []string{want}, findings(t, evaluate(t, world(t, closed), set)))
	assert.Empty(t, findings(t, evaluate(t, world(t, base()), set)))
	assert.Empty(t, findings(t, evaluate(t, world(t, closed), worlds.SetDoc("app", "s", "none", "http"))), "a gateway that is not there says nothing")
	v := world(t, docs(closed, set))
	assert.Empty(t, findings(t, deleted(t, v, read(t, v, set).Ref())), "it goes")
}

// A selector that selects nothing is reported, and so are rivals on what it
// selects.
func TestSelectors(t *testing.T) {
	probe := func(name, created, targets string) string {
		return strings.Replace(policyDoc("Probe", "app", name, "targetRefs: ["+targets+"]\na: 1"), name+"}", name+", creationTimestamp: '"+created+"'}", 1)
	}
	const older, newer = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
	const all = "{kind: HTTPRoute, selector: {}}"
	assert.Equal(t, []string{
		"Warn TargetNotFound: HTTPRoute, team=red",
	}, findings(t, evaluate(t, world(t, granted()), probe("one", older, "{kind: HTTPRoute, selector: {matchLabels: {team: red}}}"))))
	assert.Equal(t, []string{
		"Deny Conflicted Probe app/one: HTTPRoute app/r, Probe",
	}, findings(t, evaluate(t, world(t, granted(probe("one", older, all))), probe("two", newer, "{kind: HTTPRoute, name: r}"))))
	assert.Equal(t, []string{
		"Warn Conflicted Probe app/two: HTTPRoute app/r",
	}, findings(t, evaluate(t, world(t, granted(probe("two", newer, "{kind: HTTPRoute, name: r}"))), probe("one", older, all))))
}

// Ports of a Service are targets of their own.
func TestConflictsOnPorts(t *testing.T) {
	probe := func(name, created, target string) string {
		return strings.Replace(policyDoc("Probe", "app", name, "targetRefs: [{kind: Service, name: s"+target+"}]\na: 1"), name+"}", name+", creationTimestamp: '"+created+"'}", 1)
	}
	const older, newer = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
	v := world(t, granted(worlds.ServiceDoc("app", "s", 80, 81), probe("one", older, ", port: 80")))
	assert.Equal(t, []string{"Warn NoPath"}, codes(t, evaluate(t, v, probe("two", newer, ", port: 81"))))
	assert.Equal(t, []string{"Warn NoPath"}, codes(t, evaluate(t, v, probe("two", newer, ""))))
	assert.Equal(t, []string{"Deny Conflicted"}, codes(t, evaluate(t, v, probe("two", newer, ", port: 80"))))
	t.Run("one that comes to another port than before is denied", func(t *testing.T) {
		v := world(t, granted(worlds.ServiceDoc("app", "s", 80, 81), probe("one", older, ", port: 80"), probe("three", older, ", port: 81"), probe("two", newer, ", port: 81")))
		assert.Equal(t, []string{"Deny Conflicted"}, codes(t, evaluate(t, v, probe("two", newer, ", port: 80"))))
		assert.Equal(t, []string{"Warn Conflicted"}, codes(t, evaluate(t, v, probe("two", newer, ", port: 81"))))
	})
}

// Writes of other kinds are evaluated as those of gateways and routes.
func TestWritesOfOtherKinds(t *testing.T) {
	paint := base(
		strings.Replace(gatewayDoc("h", "istio", "http"), "from: All}}}", "from: Selector, selector: {matchLabels: {in: h}}}}}", 1),
		"kind: GatewayClass\nmetadata: {name: istio}", routeDoc("s", "[{}]", "h"),
		policyDoc("Paint", "infra", "of-h", "targetRefs: [{kind: Gateway, name: h}]\noverrides: {strategy: patch, a: 1}"),
		policyDoc("Paint", "app", "of-s", "targetRefs: [{kind: HTTPRoute, name: s}]\na: 2"),
	)
	t.Run("a namespace that is labelled comes under a gateway", func(t *testing.T) {
		assert.Equal(t, []string{
			"Warn BlastRadius: Namespace app, Paint, 1 path, 1 namespace",
			"Warn Overridden a Paint app/of-s: 1 path, Paint infra/of-h",
		}, findings(t, evaluate(t, world(t, paint), "kind: Namespace\nmetadata: {name: app, labels: {in: h}}")))
	})
	t.Run("a class that goes changes no path", func(t *testing.T) {
		v := world(t, paint)
		assert.Empty(t, findings(t, deleted(t, v, read(t, v, "kind: GatewayClass\nmetadata: {name: istio}").Ref())))
	})
	t.Run("a profile takes no part in a view", func(t *testing.T) {
		assert.Empty(t, findings(t, evaluate(t, world(t, paint), worlds.ProfileDoc("Dye", "strategy: {allowed: [merge]}"))))
	})
	t.Run("a policy that selects workloads is not read", func(t *testing.T) {
		v := world(t, base(worlds.ClassProfileDoc("inherited", "Dye", "targets: {fields: [targetRefs], workloads: [selector]}")))
		assert.Equal(t, []string{
			"Warn NotRead: Dye app/d, spec.selector, Overrule",
		}, findings(t, evaluate(t, v, policyDoc("Dye", "app", "d", "selector: {matchLabels: {app: x}}\na: 1"))))
	})
}
