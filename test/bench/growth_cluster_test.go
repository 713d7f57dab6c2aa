package bench

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/test/worlds"
)

// spare is the gateway with a fixed number of routes, of one path each.
var spare = worlds.Uniform{Routes: 100, Rules: 1, OwnPolicy: true}

// differing is the number of routes or policies that the operations take turns
// with.
const differing = 500

// growthCluster is a cluster of a size, with one more gateway that is the same in
// each.
type growthCluster struct {
	*worlds.Cluster
	heldMiB  float64
	guard    *guard.Guard
	inFlight *inflight.Log
}

func newGrowthCluster(t testing.TB, routes int) *growthCluster {
	t.Helper()
	before := liveHeapMiB()
	c := worlds.Mix(t, worlds.Size{Gateways: routes / 10, Routes: routes})
	w := withGuard(c)
	w.heldMiB = liveHeapMiB() - before
	w.inFlight = inflight.New(c.Store, inflight.Options{})
	objects := []map[string]any{onSpareGateway(c.Size.Gateway(worlds.Busy)), onSpareGateway(spare.GatewayPolicy(0))}
	for i := range spare.Routes {
		objects = append(objects, onSpareGateway(spare.Route(i)), onSpareGateway(spare.RoutePolicy(i)))
	}
	c.Put(t, objects...)
	return w
}

// withGuard adds a guard without a time limit to a cluster. The writer may change
// overrides.
func withGuard(c *worlds.Cluster) *growthCluster {
	return &growthCluster{Cluster: c, guard: &guard.Guard{Engine: effective.NewEngine(), Budget: 1 << 60, Permissions: rightsOf(true)}}
}

// rightsOf says whether users may change overrides.
type rightsOf bool

func (r rightsOf) MayOverride(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	return bool(r), nil
}

func (rightsOf) Check(api.Ref) string { return "check" }

// liveHeapMiB returns the live heap in MiB. The second collection frees the
// pools' objects that the first one only marked.
func liveHeapMiB() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// onSpareGateway renames an object and its references, so that it belongs to the
// spare gateway.
func onSpareGateway(object map[string]any) map[string]any {
	rename := func(o any) {
		named := o.(map[string]any)
		named["name"] = "spare-" + named["name"].(string)
	}
	rename(object["metadata"])
	spec := object["spec"].(map[string]any)
	if target, ok := spec["targetRef"]; ok {
		rename(target)
	}
	if parents, ok := spec["parentRefs"].([]any); ok {
		for _, p := range parents {
			rename(p)
		}
	}
	return object
}

// spread returns positions of routes or policies, evenly distributed over the
// cluster.
func (w *growthCluster) spread() []int {
	out := make([]int, min(differing, w.Size.Routes))
	for i := range out {
		out[i] = i * w.Size.Routes / len(out)
	}
	return out
}

// received returns an object as a watch decodes it from a response.
func received[T any](t testing.TB, object map[string]any) T {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	var out T
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}
