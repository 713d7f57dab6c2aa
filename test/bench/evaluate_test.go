package bench

import (
	"testing"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/worlds"
)

// BenchmarkEvaluateRoute is BenchmarkRouteWrite without the connection and the
// decoding.
func BenchmarkEvaluateRoute(b *testing.B) {
	cluster := worlds.Mix(b, worlds.Size{Gateways: 100, Routes: 1000})
	w := cluster.Size.RouteWrite(700)
	cluster.Put(b, w.Before)
	v, _ := cluster.Store.View()
	before := cluster.Decode(b, w.Before)
	after := cluster.Decode(b, w.After)
	c := guard.Change{Operation: guard.Update, Before: before, After: after}
	g := &guard.Guard{Engine: effective.NewEngine()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Evaluate(b.Context(), v, c, nil); err != nil {
			b.Fatal(err)
		}
	}
}
