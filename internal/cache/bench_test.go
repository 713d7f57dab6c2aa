package cache

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/controllers/audit"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// sinks feed a store with a fixture as a Watcher does.
type sinks struct {
	store  *snapshot.Store
	kinds  *snapshot.Kinds
	byKind map[api.PolicyKind]*sink
}

// newSinks subscribes to the store, as components of the server do.
func newSinks(tb testing.TB) *sinks {
	tb.Helper()
	s := snapshot.New()
	inflight.New(s, inflight.Options{})
	audit.New(audit.Options{Store: s})
	return &sinks{store: s, kinds: snapshot.NewKinds().ForManifests(), byKind: make(map[api.PolicyKind]*sink)}
}

// of returns the sink of a kind.
func (s *sinks) of(kind api.PolicyKind) *sink {
	if out := s.byKind[kind]; out != nil {
		return out
	}
	out := &sink{
		store: s.store, kind: kind, target: objectTarget{store: s.store, kind: kind},
		health: newHealthTracker(kind.Kind), log: logr.Discard(), listed: func() {},
	}
	if b := builtinOf(kind); b != nil {
		out.decode = b.decode
	} else {
		k := s.kinds.Of(kind)
		s.store.AddKind(k)
		out.decode, out.target = policyDecoder(k), policyTarget{objectTarget{store: s.store, kind: kind}}
	}
	s.byKind[kind] = out
	return out
}

// received returns an object as client-go decodes it from a response of the API server.
func received(tb testing.TB, object map[string]any) kruntime.Object {
	tb.Helper()
	data, err := json.Marshal(object)
	require.NoError(tb, err)
	if b := builtinOf(worlds.KindOf(object)); b != nil {
		out := b.example.DeepCopyObject()
		require.NoError(tb, json.Unmarshal(data, out))
		return out
	}
	u := &unstructured.Unstructured{}
	require.NoError(tb, u.UnmarshalJSON(data))
	return u
}

// list feeds objects as streaming lists: each is decoded as it arrives.
func (s *sinks) list(tb testing.TB, size worlds.Size, wanted func(api.PolicyKind) bool) {
	tb.Helper()
	lists := make(map[api.PolicyKind][]any)
	for o := range worlds.Objects(size) {
		kind := worlds.KindOf(o)
		if !wanted(kind) {
			continue
		}
		item, err := s.of(kind).Transformer()(received(tb, o))
		require.NoError(tb, err)
		lists[kind] = append(lists[kind], item)
	}
	for kind, items := range lists {
		require.NoError(tb, s.of(kind).Replace(items, "1"))
	}
}

// renamed returns a route with another first hostname.
func renamed(route map[string]any) map[string]any {
	hostnames := route["spec"].(map[string]any)["hostnames"].([]any)
	hostnames[0] = "new-" + hostnames[0].(string)
	return route
}

// BenchmarkEvent measures one watch event in a cluster of the full size, from the
// object that client-go has decoded to the next view of the store. Each event is a
// change: objects alternate between two states.
func BenchmarkEvent(b *testing.B) {
	const differing = 500
	s, size := newSinks(b), worlds.Full
	s.list(b, size, func(api.PolicyKind) bool { return true })
	tests := []struct {
		name       string
		was, after func(int) map[string]any
	}{
		{"route", size.Route, func(i int) map[string]any { return renamed(size.Route(i)) }},
		{"policy", size.RoutePolicy, func(i int) map[string]any { return size.RoutePolicyWrite(i).After }},
	}
	for _, test := range tests {
		var after, was []kruntime.Object
		var to []*sink
		for n := range differing {
			i := n * size.Routes / differing
			o := test.was(i)
			after, was = append(after, received(b, test.after(i))), append(was, received(b, o))
			to = append(to, s.of(worlds.KindOf(o)))
		}
		events := append(after, was...)
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := to[i%differing].Update(events[i%len(events)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemory measures the memory that the store of a cluster of the full size
// keeps alive, per route and per policy. There is no other informer cache. The
// measurement is not repeated per op.
func BenchmarkMemory(b *testing.B) {
	s, size := newSinks(b), worlds.Full
	isRoute := func(k api.PolicyKind) bool { return k == gateway.KindOf(gateway.KindHTTPRoute) }
	isPolicy := func(k api.PolicyKind) bool { return builtinOf(k) == nil }
	s.list(b, size, func(k api.PolicyKind) bool { return !isRoute(k) && !isPolicy(k) })
	empty := alive()
	s.list(b, size, isRoute)
	routes := alive()
	s.list(b, size, isPolicy)
	all := alive()
	for b.Loop() {
		runtime.KeepAlive(s)
	}
	b.ReportMetric(0, "ns/op") // hidden: nothing was timed
	b.ReportMetric((routes-empty)/1024/float64(size.Routes), "KiB/route")
	b.ReportMetric((all-routes)/1024/float64(size.Gateways+size.Routes), "KiB/policy")
}

// alive returns the live heap in bytes. The second collection frees the contents of
// pools.
func alive() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// The benchmarks feed the same objects that the fixture's own store has, and each event
// is a change.
func TestBenchmarkFixtureIsComplete(t *testing.T) {
	size := worlds.Size{Gateways: 20, Routes: 200}
	want := worlds.Mix(t, size)
	s := newSinks(t)
	s.list(t, size, func(api.PolicyKind) bool { return true })
	have, ready := s.store.View()
	require.True(t, ready)
	whole, _ := want.Store.View()
	count := map[api.PolicyKind]int{}
	for o := range worlds.Objects(size) {
		kind := worlds.KindOf(o)
		count[kind]++
		assert.NotNil(t, have.Get(worlds.RefOf(o)), "%s", worlds.RefOf(o))
	}
	for kind, n := range count {
		assert.Equal(t, n, have.Count(kind), "%s", kind)
		assert.Equal(t, n, whole.Count(kind), "%s", kind)
	}
	route := renamed(size.Route(7))
	require.NoError(t, s.of(worlds.KindOf(route)).Update(received(t, route)))
	after, _ := s.store.View()
	got := after.Get(worlds.RefOf(route)).(*gateway.Route)
	assert.Equal(t, "new-route-00007.apps.example.com", string(got.Hostnames[0]))
}
