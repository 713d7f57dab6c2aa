package ratelimit

import (
	"cmp"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Near is a match of a route that is like one that no rule has.
type Near struct {
	// Rule that has it, the first that does.
	Rule int
	Text string
}

// Nearest returns the matches of a route that are most like one that a trigger
// states, the most alike first, each once.
func (r *Route) Nearest(m *Match, most int) []Near {
	far, wanted := make([]int, len(r.matches)), facts(&m.HTTPRouteMatch)
	order := make([]int, 0, len(r.matches))
	for i := range r.matches {
		if r.matches[i].Path == nil {
			continue // it states nothing
		}
		far[i] = distant(&m.HTTPRouteMatch, wanted, &r.matches[i])
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(far[a], far[b]) })
	var out []Near
	for _, i := range order {
		near := Near{r.ruleOf(i), textOf(&r.matches[i])}
		if !slices.ContainsFunc(out, func(n Near) bool { return n.Text == near.Text }) {
			out = append(out, near)
		}
		if len(out) == most {
			break
		}
	}
	return out
}

// ruleOf returns the rule that has a match.
func (r *Route) ruleOf(match int) int {
	rule, _ := slices.BinarySearch(r.starts, match+1)
	return rule - 1
}

// What a difference counts: a path that is another one weighs most.
const (
	otherType  = 2
	otherValue = 3
	missing    = 4
)

// distant counts what of a match, whose facts are given, another one lacks.
func distant(m *gatewayv1.HTTPRouteMatch, wanted []string, had *gatewayv1.HTTPRouteMatch) int {
	n := 0
	if m.Path != nil {
		if pathType(m.Path) != pathType(had.Path) {
			n += otherType
		}
		n += 2 * pathDistance(pathValue(m.Path), pathValue(had.Path))
	}
	if m.Method != nil {
		switch {
		case had.Method == nil:
			n += missing
		case *m.Method != *had.Method:
			n += otherValue
		}
	}
	if len(m.Headers)+len(m.QueryParams) == 0 {
		return n
	}
	has := facts(had)
	for _, fact := range wanted {
		what, rest, _ := strings.Cut(fact, "\x00")
		if what == "path" || what == "method" || slices.Contains(has, fact) {
			continue
		}
		name, _, _ := strings.Cut(rest, "\x00")
		n += missing
		if slices.ContainsFunc(has, func(h string) bool { return strings.HasPrefix(h, what+"\x00"+name+"\x00") }) {
			n += otherValue - missing
		}
	}
	return n
}

// longPath is beyond what paths are compared letter by letter.
const longPath = 32

// pathDistance tells how unlike two paths are: one that the other begins with is
// closer than its length says. What they begin with both is left out.
func pathDistance(a, b string) int {
	begins := strings.HasPrefix(a, b) && b != "/" || strings.HasPrefix(b, a) && a != "/"
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	a, b = a[same:], b[same:]
	more := max(len(a), len(b)) - longPath
	d := distance(a[:min(len(a), longPath)], b[:min(len(b), longPath)]) + max(more, 0)
	if begins {
		return (d + 1) / 2
	}
	return d
}
