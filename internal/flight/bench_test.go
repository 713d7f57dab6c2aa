package flight

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/test/worlds"
)

// BenchmarkJudge is a write of a route, each seen before the next: without a
// log, with one, with one that has other writes in it, and with one write in
// it that matters to the same paths.
func BenchmarkJudge(b *testing.B) {
	for _, c := range []struct {
		name           string
		others, nearby int
	}{{"without", -1, 0}, {"empty", 0, 0}, {"10-others", 10, 0}, {"100-others", 100, 0}, {"1-nearby", 0, 1}} {
		b.Run(c.name, func(b *testing.B) {
			objects := store.New()
			var log *Log
			if c.others >= 0 {
				log = New(objects, Options{})
			}
			fillBench(b, objects)
			g := &guard.Guard{Engine: effective.NewEngine()}
			view := func() *store.View {
				v, _ := objects.View()
				return v
			}
			write := func(doc string) Write {
				after := worlds.Read(b, view(), doc)
				change := guard.Change{Operation: guard.Update, Before: view().Get(after.Ref()), After: after}
				if change.Before == nil {
					change.Operation = guard.Create
				}
				return Write{Change: change, Stamp: func() Stamp { return Stamp{types.UID(after.Ref().Name), "10"} }}
			}
			judge := func(w Write) {
				if _, err := log.Judge(b.Context(), g, view, w); err != nil {
					b.Fatal(err)
				}
			}
			for i := range c.others {
				judge(write(worlds.RouteDoc(fmt.Sprintf("other-%d", i), "[{}]", "two")))
			}
			for range c.nearby {
				judge(write(worlds.PolicyDoc("Paint", "app", "near", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r1}]\nb: 1")))
			}
			w := write(worlds.RouteDoc("r1", "[{name: new}]", "one"))
			seen := store.Seen{Ref: w.Change.After.Ref(), UID: "r1", Version: "11"}
			b.ReportAllocs()
			for b.Loop() {
				judge(w)
				objects.Saw(seen)
			}
		})
	}
}

// fillBench has two gateways with 100 routes on each.
func fillBench(b *testing.B, s *store.Store) {
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
		s.Apply(store.Put(o))
	}
	for _, g := range []string{"one", "two"} {
		put(worlds.GatewayDoc(g, "class", "http"))
		put(worlds.PolicyDoc("Paint", "infra", g, "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: "+g+"}]\na: 1"))
		for i := range 100 {
			put(worlds.RouteDoc(fmt.Sprintf("%s%d", map[string]string{"one": "r", "two": "s"}[g], i), "[{}]", g))
		}
	}
}
