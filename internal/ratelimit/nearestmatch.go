package ratelimit

import (
	"cmp"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/editdistance"
	"overrule.dev/overrule/internal/gateway"
)

// NearMatch is a match of one of several routes that is similar to one that no rule has.
type NearMatch struct {
	// Route and Rule are the indexes of the first route and its first rule that have it.
	Route, Rule int
	Text        string
}

// Limits of comparing matches: maxComparedText is the number of characters of a text,
// maxComparedPairs the number of pairs of characters of all texts.
const (
	maxComparedText  = 256
	maxComparedPairs = 1 << 20
)

// NearestOf returns the matches of several routes whose texts are most similar to that of a
// match of a trigger, the most similar first, each once. It takes a few milliseconds at
// most: of very many long and different matches, the last ones are left out.
func NearestOf(routes []*Route, m *Match, most int) []NearMatch {
	var all []NearMatch
	distances, pairs := make(map[string]int), maxComparedPairs
	stated := m.String()
	for i, r := range routes {
		for rule := range r.Rules() {
			for _, had := range r.ruleMatches(rule) {
				text := gateway.HTTPMatchText(&had)
				if _, known := distances[text]; known || had.Path == nil { // without a path it has no criteria
					continue
				}
				a, b := differingParts(stated, gateway.HTTPMatchText(m.criteriaOf(&had)))
				if pairs -= len(a) * len(b); pairs >= 0 {
					distances[text] = editdistance.Between(a, b)
					all = append(all, NearMatch{i, rule, text})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b NearMatch) int { return cmp.Compare(distances[a.Text], distances[b.Text]) })
	return all[:min(len(all), most)]
}

// criteriaOf returns another match without what this one does not state. Another type of
// path is no difference.
func (m *Match) criteriaOf(had *gatewayv1.HTTPRouteMatch) *gatewayv1.HTTPRouteMatch {
	var out gatewayv1.HTTPRouteMatch
	if m.Path != nil {
		out.Path = &gatewayv1.HTTPPathMatch{Type: m.Path.Type, Value: had.Path.Value}
	}
	if m.Method != nil {
		out.Method = had.Method
	}
	if len(m.Headers) > 0 {
		out.Headers = had.Headers
	}
	if len(m.QueryParams) > 0 {
		out.QueryParams = had.QueryParams
	}
	return &out
}

// differingParts returns two texts without their common prefix and suffix, as far as they
// are compared.
func differingParts(a, b string) (left, right string) {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a[:min(len(a), maxComparedText)], b[:min(len(b), maxComparedText)]
}
