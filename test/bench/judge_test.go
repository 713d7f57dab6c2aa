package bench

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/test/fixture"
)

// routeOf is the i-th route, read.
func routeOf(b *testing.B, i, gateway int, hostname string) store.Object {
	b.Helper()
	text := fixture.Route(i, gateway)
	text["spec"].(map[string]any)["hostnames"] = []any{hostname}
	data, err := json.Marshal(text)
	require.NoError(b, err)
	o, err := store.Decode(api.PolicyKind{Group: api.GatewayGroup, Kind: hierarchy.KindHTTPRoute}, nil, data, 0)
	require.NoError(b, err)
	return o
}

// BenchmarkJudgeRoute is what is left of BenchmarkRouteWrite without the wire
// and the decoding.
func BenchmarkJudgeRoute(b *testing.B) {
	cluster, err := fixture.New(fixture.Size{Gateways: 100, Routes: 1000})
	require.NoError(b, err)
	v, _ := cluster.Store.View()
	c := guard.Change{
		Operation: guard.Update,
		Before:    routeOf(b, 700, cluster.GatewayOf(700), "r00700.example.com"),
		After:     routeOf(b, 700, cluster.GatewayOf(700), "new.example.com"),
	}
	g := &guard.Guard{Engine: effective.NewEngine()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Judge(b.Context(), v, c, nil); err != nil {
			b.Fatal(err)
		}
	}
}
