package ratelimit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/gateway"
)

// bulk is the size of a benchmark: the rules of a route, the matches of each, and limits
// with as many matches.
type bulk struct{ rules, matches, limits int }

var (
	few  = bulk{rules: 4, matches: 2, limits: 3}
	many = bulk{rules: 64, matches: 64, limits: 200}
)

// BenchmarkBind measures binding limits to a route by triggers, and without triggers: it
// prepares the route, binds the limits and gets the limit of each rule. "few" is a typical
// size, "many" a malicious one. An op is one route.
func BenchmarkBind(b *testing.B) {
	for name, size := range map[string]bulk{"few": few, "many": many} {
		route := size.route(b)
		b.Run(name+"/route", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewRoute(route)
			}
		})
		for form, matches := range map[string]int{"triggers": size.matches, "no-triggers": 0} {
			limits := size.read(b, matches)
			b.Run(name+"/"+form, func(b *testing.B) {
				index := NewRoute(route)
				b.ReportAllocs()
				for b.Loop() {
					bound := limits.Bind(index, []string{""})
					for rule := range index.Rules() {
						require.GreaterOrEqual(b, bound.First(rule), 0)
					}
				}
			})
		}
	}
}

// BenchmarkNearest measures the search for matches that are similar to a missing one.
func BenchmarkNearest(b *testing.B) {
	for name, size := range map[string]bulk{"few": few, "many": many} {
		index := NewRoute(size.route(b))
		stated := size.read(b, size.matches).All[0].Triggers[0].Matches[0]
		stated.Path.Value = new("/shop/v1/department/1/toys/1")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NotEmpty(b, NearestOf([]*Route{index}, &stated, 3))
			}
		})
	}
}

// BenchmarkRead measures reading the limits of a policy with the maximum number of
// triggers, or of expressions of 1 KiB.
func BenchmarkRead(b *testing.B) {
	for name, values := range map[string][]any{
		"few":              {few.limit(b, 0, few.matches)},
		"many-triggers":    {many.limit(b, 0, many.matches)},
		"many-expressions": {withExpressions(`^/(toys|assets)/[a-z0-9-]+$` + strings.Repeat("/[a-z]+", 140))},
		"many-classes":     {withExpressions(strings.Repeat(`\pL+\pN`, 146))},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, value := range values {
					Read(field.NewPath("limits"), "l", value)
				}
			}
		})
	}
}

// TestLargestLimitBinds checks that the limits of the benchmarks bind.
func TestLargestLimitBinds(t *testing.T) {
	size := bulk{rules: 64, matches: 64, limits: 3}
	bound := size.read(t, size.matches).Bind(NewRoute(size.route(t)), []string{""})
	for i := range bound.Limits {
		for rule := range size.rules {
			require.Equal(t, rule%size.limits == i, bound.Limits[i].Matches(rule))
		}
	}
}

func benchMatch(rule, m int) map[string]any {
	return map[string]any{
		"path":    map[string]any{"type": "PathPrefix", "value": fmt.Sprintf("/shop/v1/departments/%d/toys/%d", rule, m)},
		"method":  []string{"GET", "POST"}[m%2],
		"headers": []any{map[string]any{"name": "x-tenant", "value": "acme"}},
	}
}

// route returns a route whose rules have numbered matches.
func (s bulk) route(tb testing.TB) *gateway.Route {
	tb.Helper()
	rules := make([]any, s.rules)
	for rule := range rules {
		matches := make([]any, s.matches)
		for m := range matches {
			matches[m] = benchMatch(rule, m)
		}
		rules[rule] = map[string]any{"matches": matches}
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"namespace": "app", "name": "toystore"}, "spec": map[string]any{"rules": rules},
	})
	require.NoError(tb, err)
	r, err := gateway.ReadRoute(gateway.KindHTTPRoute, data, nil, gateway.Newest)
	require.NoError(tb, err)
	return r
}

// limit returns a limit with a number of matches of the rules with its number.
func (s bulk) limit(tb testing.TB, number, matches int) any {
	tb.Helper()
	limit := map[string]any{"rates": []any{map[string]any{"limit": int64(5), "unit": "minute"}}}
	var triggers []any
	for rule := number; rule < s.rules && matches > 0; rule += s.limits {
		stated := make([]any, matches)
		for m := range stated {
			stated[m] = benchMatch(rule, m)
		}
		triggers = append(triggers, map[string]any{"matches": stated})
	}
	if triggers == nil && matches > 0 {
		triggers = []any{map[string]any{"matches": []any{benchMatch(number%s.rules, 0)}}}
	}
	if triggers != nil {
		limit["triggers"] = triggers
	}
	return limit
}

// read reads the limits.
func (s bulk) read(tb testing.TB, matches int) *Limits {
	tb.Helper()
	all := make([]*Limit, s.limits)
	for i := range all {
		l, errs := Read(field.NewPath("limits"), fmt.Sprintf("l%03d", i), s.limit(tb, i, matches))
		require.Empty(tb, errs)
		all[i] = l
	}
	return NewLimits(all)
}

// withExpressions is a limit with 64 conditions that are expressions.
func withExpressions(pattern string) any {
	when := make([]any, maxItems)
	for i := range when {
		when[i] = map[string]any{"selector": "auth.identity.group", "operator": "matches", "value": fmt.Sprintf("%s%d", pattern, i)}
	}
	return map[string]any{"rates": []any{map[string]any{"limit": int64(5), "unit": "minute"}}, "when": when}
}
