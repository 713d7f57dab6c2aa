package gateway

import (
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// LosesMatches reports whether the k-th rule of a route had a match before an update
// that no rule has after it.
func LosesMatches(before *Route, k int, after *Route) bool {
	return len(before.lostMatches(k, after)) > 0
}

// MayReceive reports whether the i-th rule of a route after an update may receive
// requests that the k-th received before: requests of a match that no rule has any
// more. Which of several matching rules receives a request depends on the
// implementation; rules whose matches cannot overlap are excluded.
func MayReceive(before *Route, k int, after *Route, i int) bool {
	lost := before.lostMatches(k, after)
	if len(lost) == 0 {
		return false
	}
	matchesBefore, matchesAfter := before.HTTPMatches(k), after.HTTPMatches(i)
	if len(matchesBefore) == 0 || len(matchesAfter) == 0 {
		return true // not HTTPRoutes: their matches are not compared
	}
	return slices.ContainsFunc(lost, func(m int) bool {
		return slices.ContainsFunc(matchesAfter, func(other gatewayv1.HTTPRouteMatch) bool { return matchesOverlap(&matchesBefore[m], &other) })
	})
}

// lostMatches returns the indexes of the matches of a rule that no rule has after an
// update.
func (r *Route) lostMatches(rule int, after *Route) []int {
	var out []int
	var has []uint64
	for i := range after.Rules {
		has = append(has, after.matchesOf(i)...)
	}
	for i, m := range r.matchesOf(rule) {
		if !slices.Contains(has, m) {
			out = append(out, i)
		}
	}
	return out
}

// matchesOverlap reports whether some request can satisfy both matches, which are
// defaulted.
func matchesOverlap(a, b *gatewayv1.HTTPRouteMatch) bool {
	if a.Method != nil && b.Method != nil && *a.Method != *b.Method || !pathsOverlap(a.Path, b.Path) {
		return false
	}
	for _, h := range a.Headers {
		for _, o := range b.Headers {
			if strings.EqualFold(string(h.Name), string(o.Name)) && h.Value != o.Value &&
				*h.Type == gatewayv1.HeaderMatchExact && *o.Type == gatewayv1.HeaderMatchExact {
				return false
			}
		}
	}
	for _, q := range a.QueryParams {
		for _, o := range b.QueryParams {
			if q.Name == o.Name && q.Value != o.Value && *q.Type == gatewayv1.QueryParamMatchExact && *o.Type == gatewayv1.QueryParamMatchExact {
				return false
			}
		}
	}
	return true
}

func pathsOverlap(a, b *gatewayv1.HTTPPathMatch) bool {
	exact, prefix := gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix
	switch {
	case *a.Type == exact && *b.Type == exact:
		return *a.Value == *b.Value
	case *a.Type == exact && *b.Type == prefix:
		return pathUnder(*a.Value, *b.Value)
	case *a.Type == prefix && *b.Type == exact:
		return pathUnder(*b.Value, *a.Value)
	case *a.Type == prefix && *b.Type == prefix:
		return pathUnder(*a.Value, *b.Value) || pathUnder(*b.Value, *a.Value)
	default:
		return true // a regular expression
	}
}

// pathUnder reports whether a path has a prefix, element by element.
func pathUnder(path, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return strings.TrimSuffix(path, "/") == prefix || strings.HasPrefix(path, prefix+"/")
}
