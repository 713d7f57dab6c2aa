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
	type scored struct {
		Near
		far int
	}
	var all []scored
	seen := make(map[string]bool)
	for rule := range r.Rules() {
		for i := range r.RuleMatches(rule) {
			had := &r.matches[r.starts[rule]+i]
			if had.Path == nil {
				continue // it states nothing
			}
			if text := textOf(had); !seen[text] {
				seen[text] = true
				all = append(all, scored{Near{rule, text}, far(&m.HTTPRouteMatch, had)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(a.far, b.far) })
	var out []Near
	for _, s := range all[:min(len(all), most)] {
		out = append(out, s.Near)
	}
	return out
}

// What a difference counts: a path that is another one weighs most.
const (
	otherType  = 2
	otherValue = 3
	missing    = 4
)

// far counts what of a match another one lacks.
func far(m, had *gatewayv1.HTTPRouteMatch) int {
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
	has := facts(had)
	for _, fact := range facts(m) {
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
const longPath = 128

// pathDistance tells how unlike two paths are: one that the other begins with is
// closer than its length says.
func pathDistance(a, b string) int {
	if len(a) > longPath || len(b) > longPath {
		a, b = a[:min(len(a), longPath)], b[:min(len(b), longPath)]
	}
	if d := distance(a, b); !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a) || a == "/" || b == "/" {
		return d
	} else {
		return (d + 1) / 2
	}
}
