package gateway

import "slices"

// LosesMatches reports whether the k-th rule of a route had a match before an update
// that no rule has after it.
func LosesMatches(before *Route, k int, after *Route) bool {
	return len(before.lostMatches(k, after)) > 0
}

// MayReceive reports whether the i-th rule of a route after an update may receive
// requests that the k-th received before: requests of a match that no rule has any
// more. Which of several matching rules receives a request depends on the
// implementation; rules whose matches no request meets together are excluded.
func MayReceive(before *Route, k int, after *Route, i int) bool {
	return slices.ContainsFunc(before.lostMatches(k, after), func(lost *routeMatch) bool {
		return slices.ContainsFunc(after.matchesIn(i), func(m *routeMatch) bool {
			found, d := new(Request).meetBoth(lost, m, nil, &routerMemo{texts: &textMemo{}})
			return found || d != none
		})
	})
}

// lostMatches returns the matches of a rule that no rule has after an update.
func (r *Route) lostMatches(rule int, after *Route) []*routeMatch {
	var has []uint64
	for i := range after.Rules {
		has = append(has, after.matchesOf(i)...)
	}
	return slices.DeleteFunc(r.matchesIn(rule), func(m *routeMatch) bool { return slices.Contains(has, m.hash()) })
}
