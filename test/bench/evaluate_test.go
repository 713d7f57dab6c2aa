package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/fixture"
)

// BenchmarkEvaluateRoute is BenchmarkRouteWrite without the connection and the
// decoding.
func BenchmarkEvaluateRoute(b *testing.B) {
	cluster, err := fixture.New(fixture.Size{Gateways: 100, Routes: 1000})
	require.NoError(b, err)
	w := cluster.Size.RouteWrite(700)
	require.NoError(b, cluster.Put(w.Before))
	v, _ := cluster.Store.View()
	before, err := cluster.Decode(w.Before)
	require.NoError(b, err)
	after, err := cluster.Decode(w.After)
	require.NoError(b, err)
	c := guard.Change{Operation: guard.Update, Before: before, After: after}
	g := &guard.Guard{Engine: effective.NewEngine()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Evaluate(b.Context(), v, c, nil); err != nil {
			b.Fatal(err)
		}
	}
}
