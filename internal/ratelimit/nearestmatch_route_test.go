package ratelimit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/editdistance"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// routeWith has a rule for each list of matches.
func routeWith(rules ...[]gatewayv1.HTTPRouteMatch) *Route {
	out := &Route{ruleStarts: []int{0}}
	for _, matches := range rules {
		out.matches = append(out.matches, matches...)
		out.ruleStarts = append(out.ruleStarts, len(out.matches))
	}
	return out
}

func matchOf(method, kind, path string, headers ...string) gatewayv1.HTTPRouteMatch {
	m := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchType(kind)), Value: &path}}
	if method != "" {
		m.Method = new(gatewayv1.HTTPMethod(method))
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, "=")
		m.Headers = append(m.Headers, gatewayv1.HTTPHeaderMatch{Name: gatewayv1.HTTPHeaderName(name), Value: value})
	}
	return m
}

func TestNearest(t *testing.T) {
	const prefix, exact = "PathPrefix", "Exact"
	for name, c := range tables.Read[map[string]struct {
		Rules  [][]gatewayv1.HTTPRouteMatch
		Stated gatewayv1.HTTPRouteMatch
		Want   []NearMatch
	}](t, "testdata/tables/nearest.yaml") {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.Want, routeWith(c.Rules...).Nearest(&Match{c.Stated}, 3))
		})
	}
	assert.Empty(t, routeWith([]gatewayv1.HTTPRouteMatch{matchOf("", prefix, "/a")}).Nearest(&Match{matchOf("", prefix, "/a")}, 0))
}

// Comparing all paths character by character gives the same result.
func TestNearestAgreesWithReference(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	one := func() gatewayv1.HTTPRouteMatch {
		path := "/" + strings.Repeat("ab/"[dice.IntN(3):][:1], dice.IntN(4)) + []string{"", "a", "toys", "toy", "ba"}[dice.IntN(5)]
		return matchOf([]string{"", "GET", "POST"}[dice.IntN(3)], []string{"Exact", "PathPrefix"}[dice.IntN(2)], path,
			[][]string{nil, {"a=1"}, {"a=2"}, {"b=1", "a=1"}}[dice.IntN(4)]...)
	}
	for range 2_000 {
		rules := make([][]gatewayv1.HTTPRouteMatch, 1+dice.IntN(4))
		for i := range rules {
			for range 1 + dice.IntN(6) {
				rules[i] = append(rules[i], one())
			}
		}
		r, stated := routeWith(rules...), one()
		want := nearestOfAll(r, &stated, 3)
		if !assert.Equal(t, want, r.Nearest(&Match{stated}, 3), "%s of %v", matchText(&stated), r.Texts(0)) {
			return
		}
	}
}

func nearestOfAll(r *Route, m *gatewayv1.HTTPRouteMatch, most int) []NearMatch {
	type one struct {
		NearMatch
		far int
	}
	var all []one
	for rule := range r.Rules() {
		for i, text := range r.Texts(rule) {
			had := r.RuleMatches(rule)[i]
			letters := editdistance.Between(*m.Path.Value, *had.Path.Value)
			if a, b := *m.Path.Value, *had.Path.Value; a != "/" && b != "/" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
				letters = (letters + 1) / 2
			}
			if !slices.ContainsFunc(all, func(o one) bool { return o.Text == text }) {
				all = append(all, one{NearMatch{rule, text}, distanceExceptPath(m, &had) + 2*letters})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(a.far, b.far) })
	var out []NearMatch
	for _, o := range all[:min(len(all), most)] {
		out = append(out, o.NearMatch)
	}
	return out
}

// Of very many long paths only the most similar ones are compared character by character.
func TestNearestOfManyLongPaths(t *testing.T) {
	long := func(i int) string {
		return fmt.Sprintf("/%08x/%s/%08x", i*2654435761%(1<<32), strings.Repeat("ab"[i%2:][:1], 90), i*40503%(1<<32))
	}
	rules := make([][]gatewayv1.HTTPRouteMatch, 64)
	for i := range rules {
		for m := range 64 {
			rules[i] = append(rules[i], matchOf("", "PathPrefix", long(i*64+m)))
		}
	}
	slip := strings.Replace(long(4_000), "/", "/z", 1)
	near := routeWith(rules...).Nearest(&Match{matchOf("", "PathPrefix", slip)}, 1)
	assert.Equal(t, []NearMatch{{62, "PathPrefix " + long(4_000)}}, near)
}

// A GRPCRoute has no such matches.
func TestNearestOfGRPCRoute(t *testing.T) {
	r := NewRoute(&gateway.Route{Kind: gateway.KindGRPCRoute, Rules: make([]gateway.Rule, 1)})
	assert.Empty(t, r.Nearest(&Match{matchOf("", "PathPrefix", "/toys")}, 3))
}
