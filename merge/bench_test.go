package merge_test

import (
	"fmt"
	"testing"

	"overrule.dev/overrule/merge"
)

// Two policies, as most paths have them.
func BenchmarkFold(b *testing.B) {
	layers := stack(
		policy("gw", overrides(mixed, rule("limits.a", 1)), defaults(mixed, rule("limits.b", 1))),
		policy("route", bare(rule("limits.a", 2), rule("limits.c", 2))),
	)
	b.Run("rules", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := merge.Fold(layers, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("with its spec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r, err := merge.Fold(layers, nil)
			if err != nil {
				b.Fatal(err)
			}
			_ = r.Spec()
		}
	})
}

// The cost of a rule does not grow with the number of rules.
func BenchmarkFoldManyRules(b *testing.B) {
	for _, n := range []int{20, 200, 2000} {
		var high, low []merge.Rule
		for i := range n {
			high = append(high, rule(fmt.Sprintf("limits.l%d", i), 1))
			low = append(low, rule(fmt.Sprintf("limits.l%d", i+n/2), 2))
		}
		layers := stack(policy("gw", overrides(mixed, high...)), policy("route", bare(low...)))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := merge.Fold(layers, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*n), "ns/rule")
		})
	}
}
