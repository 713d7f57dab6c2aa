package ratelimit

import (
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
	matches            []gatewayv1.HTTPRouteMatch // of all rules, in order
	ruleStarts         []int                      // index of the first match of each rule, and the number of matches
	matchesByCriterion map[string]bitset          // the matches that have a criterion
	allMatches         bitset
}

// NewRoute returns the rules of a route. A rule of another kind than HTTPRoute has one
// match without criteria, which only a match without criteria selects.
func NewRoute(r *gateway.Route) *Route {
	out := &Route{ruleStarts: make([]int, 1, len(r.Rules)+1), matchesByCriterion: make(map[string]bitset)}
	for i := range r.Rules {
		all := r.HTTPMatches(i)
		if len(all) == 0 {
			all = []gatewayv1.HTTPRouteMatch{{}}
		}
		out.matches = append(out.matches, all...)
		out.ruleStarts = append(out.ruleStarts, len(out.matches))
	}
	out.allMatches = newBitset(len(out.matches))
	for i := range out.matches {
		out.allMatches.add(i)
		for _, fact := range criteria(&out.matches[i]) {
			if out.matchesByCriterion[fact] == nil {
				out.matchesByCriterion[fact] = newBitset(len(out.matches))
			}
			out.matchesByCriterion[fact].add(i)
		}
	}
	return out
}

// Matches returns the number of matches of all rules.
func (r *Route) Matches() int { return len(r.matches) }

// Rules returns the number of rules.
func (r *Route) Rules() int { return len(r.ruleStarts) - 1 }

// matchesWith returns the matches that have all criteria. The result is shared and must
// not be edited.
func (r *Route) matchesWith(facts []string) bitset {
	if len(facts) == 0 {
		return r.allMatches
	}
	out := r.matchesByCriterion[facts[0]]
	if len(facts) > 1 && out != nil {
		out = out.clone()
	}
	for _, fact := range facts[1:] {
		if out == nil {
			return nil
		}
		also := r.matchesByCriterion[fact]
		if also == nil {
			return nil
		}
		out.intersect(also)
	}
	return out
}

// criteria returns the criteria of a match as strings, which are equal if Gateway API
// treats the criteria as equal: names of headers are case-insensitive, and of two
// headers or query parameters of the same name only the first counts.
func criteria(m *gatewayv1.HTTPRouteMatch) []string {
	out := make([]string, 0, 2+len(m.Headers)+len(m.QueryParams))
	if m.Path != nil {
		out = append(out, "path\x00"+pathType(m.Path)+"\x00"+pathValue(m.Path))
	}
	if m.Method != nil {
		out = append(out, "method\x00"+string(*m.Method))
	}
	seen := make(map[string]bool)
	state := func(what, name, kind, value string) {
		if what += "\x00" + name + "\x00"; !seen[what] {
			seen[what] = true
			out = append(out, what+kind+"\x00"+value)
		}
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		state("header", strings.ToLower(string(h.Name)), valueOr(h.Type, gatewayv1.HeaderMatchExact), h.Value)
	}
	for i := range m.QueryParams {
		q := &m.QueryParams[i]
		state("query", string(q.Name), valueOr(q.Type, gatewayv1.QueryParamMatchExact), q.Value)
	}
	return out
}

func pathType(p *gatewayv1.HTTPPathMatch) string {
	return valueOr(p.Type, gatewayv1.PathMatchPathPrefix)
}

func pathValue(p *gatewayv1.HTTPPathMatch) string { return valueOr(p.Value, "/") }

// valueOr returns the value of a field, or its default.
func valueOr[T ~string](field *T, def T) string {
	if field == nil {
		return string(def)
	}
	return string(*field)
}

// matchText returns a match for messages: "GET PathPrefix /toys with header x=1".
func matchText(m *gatewayv1.HTTPRouteMatch) string { return gateway.HTTPMatchText(m) }

// String returns the match for messages.
func (m *Match) String() string { return matchText(&m.HTTPRouteMatch) }
