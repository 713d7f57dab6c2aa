package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/worlds"
)

// BenchmarkMesh evaluates writes of a route to a Service with 1,000 other routes, one of
// which has an override.
func BenchmarkMesh(b *testing.B) {
	rules := func(i int) string { return fmt.Sprintf("[{matches: [{path: {value: /p%d/x}}]}]", i) }
	producer := func(i int, rules string) string {
		return meshRoute("HTTPRoute", "app", fmt.Sprint("r", i), rules, 20)
	}
	consumer := func(i int, rules string) string {
		return meshRoute("HTTPRoute", fmt.Sprint("n", i), "c", rules, 20)
	}
	for name, c := range map[string]struct {
		route func(int, string) string
		write string
	}{
		"producers/a route more":          {producer, producer(1001, rules(1001))},
		"producers/a route for all paths": {producer, producer(1001, "[{}]")},
		"consumers/a route more":          {consumer, consumer(1001, rules(1001))},
		"consumers/a producer route":      {consumer, producer(1001, "[{}]")},
		"consumers/a port more":           {consumer, worlds.ServiceDoc("app", "s", 80, 81, 82)},
	} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			all := []string{net, worlds.ServiceDoc("app", "s", 80, 81), producer(0, rules(0)), netOn("{kind: HTTPRoute, name: r0}")}
			for i := range 1000 {
				all = append(all, c.route(i+1, rules(i+1)))
			}
			v := world(b, docs(all...))
			g := &guard.Guard{Engine: effective.NewEngine()}
			w := change(v, read(b, v, c.write))
			b.ReportAllocs()
			for b.Loop() {
				_, err := g.Evaluate(b.Context(), v, w, nil)
				require.NoError(b, err)
			}
		})
	}
}
