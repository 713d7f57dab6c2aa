package inflight

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// BenchmarkEvaluate is a write of a route, each seen before the next: without a
// log, with one, with one that has other writes in it, and with one write in
// it that matters to the same paths.
func BenchmarkEvaluate(b *testing.B) {
	for _, c := range []struct {
		name           string
		others, nearby int
	}{
		{"without", -1, 0}, {"empty", 0, 0}, {"40-others", 40, 0}, {"400-others", 400, 0}, {"4000-others", 4000, 0},
		{"1-nearby", 0, 1}, {"3-nearby", 0, 3}, {"40-nearby", 0, 40}, {"400-nearby", 0, 400},
	} {
		b.Run(c.name, func(b *testing.B) {
			objects := snapshot.New()
			var log *Log
			if c.others >= 0 {
				log = New(objects, Options{MaxWrites: 1 << 20, MaxBytes: 1 << 40, MaxWait: -1})
			}
			fillBench(b, objects)
			g := &guard.Guard{Engine: effective.NewEngine()}
			view := func() *snapshot.View {
				v, _ := objects.View()
				return v
			}
			write := func(doc string) Write {
				after := worlds.Read(b, view(), doc)
				change := guard.Change{Operation: guard.Update, Before: view().Get(after.Ref()), After: after}
				if change.Before == nil {
					change.Operation = guard.Create
				}
				return Write{Change: change, Precondition: func() Precondition { return Precondition{types.UID(after.Ref().Name), "10"} }}
			}
			evaluate := func(w Write) {
				if _, err := log.Evaluate(b.Context(), g, view, w); err != nil {
					b.Fatal(err)
				}
			}
			for i := range c.others {
				evaluate(write(worlds.RouteDoc(fmt.Sprintf("other-%d", i), "[{}]", "two")))
			}
			for i := range c.nearby {
				evaluate(write(worlds.PolicyDoc("Paint", "app", fmt.Sprintf("near-%d", i), "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r1}]\nb: 1")))
			}
			w := write(worlds.RouteDoc("r1", "[{name: new}]", "one"))
			seen := snapshot.Observation{Ref: w.Change.After.Ref(), UID: "r1", Version: "11"}
			b.ReportAllocs()
			for b.Loop() {
				evaluate(w)
				objects.Observe(seen)
			}
		})
	}
}

// BenchmarkEvaluateAbove is a write of a gateway's policy beside writes of its routes,
// which do not matter to each other.
func BenchmarkEvaluateAbove(b *testing.B) {
	for _, n := range []int{0, 40, 400, 4000} {
		b.Run(fmt.Sprintf("%d-routes", n), func(b *testing.B) {
			objects := snapshot.New()
			log := New(objects, Options{MaxWrites: 1 << 20, MaxBytes: 1 << 40, MaxWait: -1})
			fillBench(b, objects)
			g := &guard.Guard{Engine: effective.NewEngine()}
			view := func() *snapshot.View {
				v, _ := objects.View()
				return v
			}
			create := func(doc string) Write {
				after := worlds.Read(b, view(), doc)
				return Write{
					Change:       guard.Change{Operation: guard.Create, After: after},
					Precondition: func() Precondition { return Precondition{UID: types.UID(after.Ref().Name)} },
				}
			}
			evaluate := func(w Write) {
				if _, err := log.Evaluate(b.Context(), g, view, w); err != nil {
					b.Fatal(err)
				}
			}
			for i := range n {
				evaluate(create(worlds.RouteDoc(fmt.Sprintf("new-%d", i), "[{}]", "one")))
			}
			w := create(worlds.PolicyDoc("Paint", "infra", "above", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: one}]\nb: 1"))
			seen := snapshot.Observation{Ref: w.Change.After.Ref(), UID: "above", Version: "11"}
			b.ReportAllocs()
			for b.Loop() {
				evaluate(w)
				objects.Observe(seen)
			}
		})
	}
}

// fillBench has two gateways with 100 routes on each.
func fillBench(b *testing.B, s *snapshot.Store) {
	b.Helper()
	v := worlds.World(b, worlds.RouteDoc("x", "[{}]"))
	for _, k := range v.Kinds() {
		s.AddKind(k)
		s.KindListed(k.Ref())
	}
	put := func(doc string) {
		v, _ := s.View()
		o := worlds.Read(b, v, doc)
		require.NotNil(b, o)
		s.Apply(snapshot.Put(o))
	}
	for _, g := range []string{"one", "two"} {
		put(worlds.GatewayDoc(g, "class", "http"))
		put(worlds.PolicyDoc("Paint", "infra", g, "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: "+g+"}]\na: 1"))
		for i := range 100 {
			put(worlds.RouteDoc(fmt.Sprintf("%s%d", map[string]string{"one": "r", "two": "s"}[g], i), "[{}]", g))
		}
	}
}
