package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/worlds"
)

// entry is a parent of a kind that is not read, stranger one of the name of a kind
// that is.
const (
	entry    = "{group: networking.istio.io, kind: ServiceEntry, name: out}"
	stranger = "{group: example.com, kind: Gateway, namespace: infra, name: h}"
)

// Traffic that goes to a parent of a kind that is not read has not ended.
func TestRouteMovesToUnsupportedParent(t *testing.T) {
	g, h := gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http")
	onG, toG := routeDoc("r", two, "g"), worlds.ToGateway("g")
	const service = "Paint infra/top"
	byEntry := evaded(service, "ServiceEntry app/out, networking.istio.io")
	set := worlds.SetDoc("app", "s", "g", "lower")
	lost := strings.Replace(set, "parentRef: {", "parentRef: {group: example.com, kind: Mesh, ", 1)
	onR := policyDoc("Paint", "app", "top", toRoute+hard)
	toSet, toService := worlds.ToSet("app", "s"), worlds.ToService("app", "store")
	store := worlds.ServiceDoc("app", "store", 80)
	runOverrideCases(t, map[string]overrideCase{
		"to a kind that is not read":                  {before: docs(g, onG, at("g", "")), write: toParents(two, entry), want: byEntry},
		"to one that has the name of another":         {before: docs(g, h, onG, at("g", "")), write: toParents(two, stranger), want: evaded(service, "Gateway infra/h, example.com")},
		"from a gateway, with one that it had":        {before: docs(g, toParents(two, toG, entry), at("g", "")), write: toParents(two, entry), want: byEntry},
		"to a route kind of Gateway API as a parent":  {before: docs(g, onG, at("g", "")), write: toParents(two, "{kind: HTTPRoute, name: x}"), want: evaded(service, "HTTPRoute app/x, gateway.networking.k8s.io")},
		"to a set whose parent is not read":           {before: docs(g, lost, onG, at("g", "")), write: toParents(two, toSet), want: evaded(service, "Mesh infra/g, example.com")},
		"its set moves there":                         {before: docs(g, set, toParents(two, toSet), at("g", "")), write: lost, want: evaded(service, "Mesh infra/g, example.com")},
		"to a Service where no mesh is read":          {before: docs(g, store, onG, at("g", "")), write: toParents(two, toService), want: evaded(service, "Service app/store")},
		"to a Service that is not there":              {before: docs(g, onG, at("g", "")), write: toParents(two, toService)},
		"one more of these":                           {before: docs(g, onG, at("g", "")), write: toParents(two, toG, entry)},
		"one less of these":                           {before: docs(g, toParents(two, toG, entry), at("g", "")), write: onG},
		"that one goes, and a second override stays":  {before: docs(g, onG, onR), write: toParents(two, entry), of: service},
		"both were there, and a rule goes":            {before: docs(g, toParents(two, toG, entry), at("g", "")), write: toParents("[{}]", toG, entry)},
		"to a gateway that has it, beside one it had": {before: docs(g, h, toParents(two, toG, entry), strings.Replace(at("g", ""), "name: g}", "name: g}, {kind: Gateway, name: h}", 1)), write: toParents(two, worlds.ToGateway("h"), entry)},
	})
}

// Users who write such a parent are warned that it is not read; who leaves it as it was
// does not.
func TestUnsupportedParentsAreReported(t *testing.T) {
	const what = "Warn NotRead: ServiceEntry app/out, networking.istio.io"
	v := world(t, gatewayDoc("g", "istio", "http"))
	assert.Equal(t, []string{what}, findings(t, evaluate(t, v, toParents(two, entry, entry))))
	v = world(t, docs(gatewayDoc("g", "istio", "http"), toParents(two, entry)))
	assert.Empty(t, findings(t, evaluate(t, v, toParents("[{}]", entry))))
	set := strings.Replace(worlds.SetDoc("app", "s", "g", "lower"), "parentRef: {", "parentRef: {kind: Mesh, ", 1)
	assert.Equal(t, []string{"Warn NotRead: Mesh infra/g, gateway.networking.k8s.io"}, findings(t, evaluate(t, v, set)))
	v = world(t, set)
	assert.Empty(t, findings(t, evaluate(t, v, strings.Replace(set, "lower", "upper", 1))))
}
