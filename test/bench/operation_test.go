package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
	"overrule.dev/overrule/webhook"
)

// few is the number of routes: it makes an operation fast, and its allocations
// show that it visits all routes.
const few = 1_000

// mixed is a cluster with few routes, half of them on its busy gateway.
var mixed = worlds.Size{Gateways: few / 10, Routes: few}

// operations are measured in each run of the tests: see the regression test. Each
// creates its own cluster.
var operations = []struct {
	name string
	run  func(*testing.B)
}{
	{"route-write", mixedWrites(mixed.RouteWrite(someRoute))},
	{"route-annotation", annotations(mixed.RouteWrite(someRoute))},
	{"route-policy-write", mixedWrites(mixed.RoutePolicyWrite(someRoute))},
	{"route-policy-annotation", annotations(mixed.RoutePolicyWrite(someRoute))},
	{"gateway-write", mixedWrites(portWrite())},
	{"gateway-policy-write", uniformWrites(worlds.Uniform{Routes: few, OwnPolicy: true})},
	{"gateway-policy-write-when", uniformWrites(worlds.Uniform{Routes: few, OwnPolicy: true, When: true})},
	{"gateway-policy-write-alone", uniformWrites(worlds.Uniform{Routes: few})},
	{"gateway-policy-write-constraints", uniformWrites(worlds.Uniform{Routes: few, OwnPolicy: true}, constraints()...)},
	{"route-event", inMixed(routeEvent)},
	{"policy-event", inMixed(policyEvent)},
	{"effective-policies", fromCold(few)},
	{"decode-route", decodes},
	{"list-routes", lists},
	{"memory", memory},
}

// someRoute is the position of the route or policy that is written.
const someRoute = 700

// BenchmarkOperation is what Overrule does all the time, in a small cluster:
//
//   - ...-write: an UPDATE review, from its bytes to the answer's, without the
//     wire: of a route, of a route's policy, of a gateway, and of the policy of a
//     gateway whose routes have policies of their own, have those and are under a
//     condition, have none (alone), or have to meet constraints.
//   - ...-annotation: the same review at the mutating webhook.
//   - ...-event: one event of a watch, as in BenchmarkGrowth.
//   - effective-policies: those of 1,000 paths, by an engine that has folded
//     nothing before.
//   - decode-route: a route of 3 KB. list-routes: the first list of a watch.
//   - memory has no op: MiB is the live heap of the store.
//
// TestOperationsAllocateWhatTheBaselineSays compares it with
// testdata/operations.txt.
func BenchmarkOperation(b *testing.B) {
	for _, o := range operations {
		b.Run(o.name, o.run)
	}
}

// mixedWrites returns the benchmark of one write and its reverse.
func mixedWrites(there worlds.Write) func(*testing.B) {
	return func(b *testing.B) {
		gatewayWrites(b, newProduction(b, mixedWith(b, there.Before)), func(n int) worlds.Write {
			if n%2 == 1 {
				return there.Back()
			}
			return there
		})
	}
}

func mixedWith(b *testing.B, object map[string]any) *worlds.Cluster {
	b.Helper()
	c := worlds.Mix(b, mixed)
	c.Put(b, object)
	return c
}

func annotations(w worlds.Write) func(*testing.B) {
	return func(b *testing.B) {
		handler := newProduction(b, mixedWith(b, w.Before)).hooks.Handler()
		review := w.Review(b, "")
		measure(b, func(int) error { return postReview(handler, webhook.PathMutate, review) })
	}
}

// portWrite returns a write of another port of a listener of the busy gateway.
func portWrite() worlds.Write {
	before := mixed.Gateway(worlds.Busy)
	return worlds.Write{Before: before, After: edited(before, 0, func(spec map[string]any) {
		changed := mixed.Gateway(worlds.Busy)["spec"].(map[string]any)["listeners"].([]any)
		changed[0].(map[string]any)["port"] = 8443
		spec["listeners"] = changed
	})}
}

// edited returns a copy of an object with another spec and resourceVersion.
func edited(o map[string]any, version int, edit func(spec map[string]any)) map[string]any {
	out, spec, meta := maps.Clone(o), maps.Clone(o["spec"].(map[string]any)), maps.Clone(o["metadata"].(map[string]any))
	meta["resourceVersion"] = fmt.Sprint(200_000 + version)
	edit(spec)
	out["spec"], out["metadata"] = spec, meta
	return out
}

// constraints returns one constraint in CEL and one without, which all limits of
// the fixture satisfy.
func constraints() []map[string]any {
	of := func(name, key string, demand map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": constraint.ClusterKind.Group + "/v1alpha1", "kind": constraint.ClusterKind.Kind,
			"metadata": map[string]any{"name": name, "resourceVersion": "1"},
			"spec": map[string]any{
				"policyKind": map[string]any{"group": "kuadrant.io", "kind": "RateLimitPolicy"},
				key:          []any{demand},
			},
		}
	}
	return []map[string]any{
		of("in-cel", "validations", map[string]any{
			"expression": "!has(effective.limits) || effective.limits.all(n, l, l.rates.all(r, r.limit <= 100000))",
		}),
		of("plain", "rules", map[string]any{"path": "limits.*.rates[*].limit", "min": 1, "max": 100_000}),
	}
}

func inMixed(prepare func(testing.TB, *growthCluster) operation) func(*testing.B) {
	return func(b *testing.B) { measure(b, prepare(b, newGrowthCluster(b, few))) }
}

func decodes(b *testing.B) {
	route := mixed.LargeRoute(someRoute)
	data, err := json.Marshal(route)
	require.NoError(b, err)
	measure(b, func(int) error {
		_, err := snapshot.Decode(worlds.KindOf(route), nil, data, 0)
		return err
	})
}

func lists(b *testing.B) {
	c := worlds.Mix(b, mixed)
	v, _ := c.Store.View()
	var all []snapshot.Object
	for i := range few {
		all = append(all, v.Get(worlds.RefOf(mixed.Route(i))))
	}
	kind := all[0].Ref().PolicyKind()
	require.Equal(b, gateway.KindHTTPRoute, kind.Kind)
	measure(b, func(int) error {
		snapshot.New().Replace(kind, all)
		return nil
	})
}

func memory(b *testing.B) { reportHeld(b, newGrowthCluster(b, few)) }
