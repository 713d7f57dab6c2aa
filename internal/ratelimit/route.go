package ratelimit

import (
	"math/big"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/gateway"
)

// Route is the rules of a route, prepared for binding limits.
//
// A match is a set of criteria: its path, its method, each header and query parameter.
// The match of a trigger selects the matches of the route that have all of its criteria.
// Route indexes its matches by criterion, so that the cost of a trigger's match is one
// step for each of its criteria.
type Route struct {
	// Of is the route.
	Of *gateway.Route

	matches            []gatewayv1.HTTPRouteMatch // of all rules, in order
	ruleStarts         []int                      // index of the first match of each rule, and the number of matches
	matchesByCriterion map[string]*big.Int        // the set of matches that have a criterion
	allMatches         *big.Int
}

// NewRoute returns the rules of a route. A rule of another kind than HTTPRoute has one
// match without criteria, which only a match without criteria selects.
func NewRoute(r *gateway.Route) *Route {
	out := &Route{Of: r, ruleStarts: make([]int, 1, len(r.Rules)+1), matchesByCriterion: make(map[string]*big.Int), allMatches: new(big.Int)}
	for i := range r.Rules {
		all := r.Matches(i)
		if r.Kind != gateway.KindHTTPRoute || len(all) == 0 {
			all = []gateway.Match{{}}
		}
		for _, m := range all {
			out.matches = append(out.matches, m.HTTPRouteMatch)
		}
		out.ruleStarts = append(out.ruleStarts, len(out.matches))
	}
	for i := range out.matches {
		add(out.allMatches, i)
		for _, fact := range criteria(&out.matches[i]) {
			if out.matchesByCriterion[fact] == nil {
				out.matchesByCriterion[fact] = new(big.Int)
			}
			add(out.matchesByCriterion[fact], i)
		}
	}
	return out
}

// Matches returns the number of matches of all rules.
func (r *Route) Matches() int { return len(r.matches) }

// Rules returns the number of rules.
func (r *Route) Rules() int { return len(r.ruleStarts) - 1 }

// add adds an index to a set.
func add(to *big.Int, i int) { to.SetBit(to, i, 1) }

// matchesWith returns the matches that have all criteria. The result is shared and must
// not be edited.
func (r *Route) matchesWith(facts []string) *big.Int {
	out := r.allMatches
	for _, fact := range facts {
		has := r.matchesByCriterion[fact]
		if has == nil {
			return new(big.Int)
		}
		out = new(big.Int).And(out, has)
	}
	return out
}

// Texts returns the matches of a rule for messages; none of a nil Route.
func (r *Route) Texts(rule int) []string {
	if r == nil {
		return nil
	}
	var out []string
	for i := range r.ruleMatches(rule) {
		out = append(out, r.text(r.ruleStarts[rule]+i))
	}
	return out
}

func (r *Route) text(match int) string { return gateway.HTTPMatchText(&r.matches[match]) }

// ruleMatches returns the matches of a rule with the defaults of the API server. The
// result is shared and must not be edited.
func (r *Route) ruleMatches(rule int) []gatewayv1.HTTPRouteMatch {
	return r.matches[r.ruleStarts[rule]:r.ruleStarts[rule+1]]
}

// ruleHasMatch reports whether a set contains a match of a rule.
func (r *Route) ruleHasMatch(set *big.Int, rule int) bool {
	for i := r.ruleStarts[rule]; i < r.ruleStarts[rule+1]; i++ {
		if set.Bit(i) == 1 {
			return true
		}
	}
	return false
}

// criteria returns the criteria of a match with its defaults as strings, which are equal if Gateway API
// treats the criteria as equal.
func criteria(m *gatewayv1.HTTPRouteMatch) []string {
	out := make([]string, 0, 2+len(m.Headers)+len(m.QueryParams))
	if m.Path != nil {
		out = append(out, "path\x00"+string(*m.Path.Type)+"\x00"+*m.Path.Value)
	}
	if m.Method != nil {
		out = append(out, "method\x00"+string(*m.Method))
	}
	for _, h := range firstOfName(m.Headers, headerName) {
		out = append(out, "header\x00"+headerName(&h)+"\x00"+string(*h.Type)+"\x00"+h.Value)
	}
	for _, q := range firstOfName(m.QueryParams, paramName) {
		out = append(out, "query\x00"+paramName(&q)+"\x00"+string(*q.Type)+"\x00"+q.Value)
	}
	return out
}

// firstOfName returns headers or query parameters without those whose name an earlier one
// has: only the first counts.
func firstOfName[T any](all []T, name func(*T) string) []T {
	var out []T
	for i := range all {
		if !slices.ContainsFunc(out, func(o T) bool { return name(&o) == name(&all[i]) }) {
			out = append(out, all[i])
		}
	}
	return out
}

// headerName returns the name of a header, which is case-insensitive.
func headerName(h *gatewayv1.HTTPHeaderMatch) string { return strings.ToLower(string(h.Name)) }

func paramName(q *gatewayv1.HTTPQueryParamMatch) string { return string(q.Name) }

// String returns the match for messages: "GET PathPrefix /toys with header x=1".
func (m *Match) String() string { return gateway.HTTPMatchText(&m.HTTPRouteMatch) }
