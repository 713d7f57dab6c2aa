package merge_test

import (
	"fmt"
	"testing"

	"overrule.dev/overrule/merge"
)

// BenchmarkFold folds two policies, a typical path.
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

// A hundred policies of a hundred rules: the cost depends on the number of rules, not on
// that times the number of policies.
func BenchmarkFoldManyPolicies(b *testing.B) {
	const policies, rules = 100, 100
	for name, key := range map[string]func(policy, rule int) string{
		"equal":     func(_, r int) string { return fmt.Sprintf("limits.l%d", r) },
		"different": func(p, r int) string { return fmt.Sprintf("limits.l%d-%d", r, p) },
	} {
		for _, as := range []merge.Block{merge.Defaults, merge.Overrides} {
			var all []*merge.Policy
			for p := range policies {
				var list []merge.Rule
				for r := range rules {
					list = append(list, rule(key(p, r), map[string]any{"limit": int64(r)}))
				}
				all = append(all, policy(fmt.Sprintf("p%d", p), block(as, mixed, list)))
			}
			b.Run(name+"/"+as.String(), func(b *testing.B) { benchFold(b, stack(all...)) })
		}
	}
	b.Run("on one target", func(b *testing.B) { benchFold(b, onOneTarget(oldestWins, policies, rules)) })
	b.Run("side by side", func(b *testing.B) { benchFold(b, onOneTarget(collect, policies, rules)) })
	b.Run("unset", func(b *testing.B) { benchFold(b, unsetting(b, policies, rules)) })
}

func onOneTarget(meet merge.SameTarget, policies, rules int) []merge.Layer {
	var all []*merge.Policy
	for p := range policies {
		var list []merge.Rule
		for r := range rules {
			list = append(list, rule(fmt.Sprintf("p%d.l%d", p, r), 1))
		}
		all = append(all, policy(fmt.Sprintf("p%d", p), defaults(mixed, list...)))
	}
	return on(0, meet, all...)
}

// unsetting returns policies with defaults, each of which unsets those above it.
func unsetting(b *testing.B, policies, rules int) []merge.Layer {
	var all []*merge.Policy
	for p := range policies {
		var list []merge.Rule
		var names []string
		for r := range rules {
			list = append(list, rule(fmt.Sprintf("limits.l%d", r), int64(p)))
			names = append(names, fmt.Sprintf("limits.other%d-%d", r, p))
		}
		all = append(all, unsets(b, policy(fmt.Sprintf("p%d", p), defaults(mixed, list...)), names...))
	}
	return stack(all...)
}

// A hundred policies under conditions, above a policy of many rules.
func BenchmarkFoldConditions(b *testing.B) {
	var low []merge.Rule
	for r := range 1000 {
		low = append(low, rule(fmt.Sprintf("limits.l%d", r), 5))
	}
	for name, limit := range map[string]int64{"met": 1, "not met": 9} {
		var all []*merge.Policy
		for p := range 100 {
			all = append(all, policy(fmt.Sprintf("p%d", p), when(overrides(mixed, rule(fmt.Sprintf("limits.l%d", p), 6)), over("limits.l500", limit))))
		}
		all = append(all, policy("route", bare(low...)))
		b.Run(name, func(b *testing.B) { benchFold(b, stack(all...)) })
	}
}

func benchFold(b *testing.B, layers []merge.Layer) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := merge.Fold(layers, nil); err != nil {
			b.Fatal(err)
		}
	}
}
