package ratelimit

import (
	"cmp"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/editdistance"
)

// NearMatch is a match of a route that is similar to one that no rule has.
type NearMatch struct {
	// Rule is the index of the first rule that has it.
	Rule int
	Text string
}

// NearRouteMatch is a NearMatch of one of several routes.
type NearRouteMatch struct {
	// Route is the index of the first route that has it.
	Route int
	NearMatch
}

// NearestOf returns the matches of several routes that are most similar to a match of a
// trigger, the most similar first, each once.
func NearestOf(routes []*Route, m *Match, most int) []NearRouteMatch {
	type found struct {
		NearRouteMatch
		far int
	}
	var all []found
	for i, r := range routes {
		for _, s := range r.nearest(m, most) {
			if !slices.ContainsFunc(all, func(f found) bool { return f.Text == s.text }) {
				all = append(all, found{NearRouteMatch{i, NearMatch{r.ruleOf(s.index), s.text}}, s.distance})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.far, b.far) })
	var out []NearRouteMatch
	for _, f := range all[:min(len(all), most)] {
		out = append(out, f.NearRouteMatch)
	}
	return out
}

// Nearest returns the matches of a route that are most similar to a match of a trigger,
// the most similar first, each once. It takes a few milliseconds at most: of very many
// long and different paths, the least similar are left out.
func (r *Route) Nearest(m *Match, most int) []NearMatch {
	var out []NearMatch
	for _, s := range r.nearest(m, most) {
		out = append(out, NearMatch{r.ruleOf(s.index), s.text})
	}
	return out
}

func (r *Route) nearest(m *Match, most int) []scored {
	if most <= 0 {
		return nil
	}
	var all []candidate
	for i := range r.matches {
		if had := &r.matches[i]; had.Path != nil { // without a path it has no criteria
			all = append(all, newCandidate(i, &m.HTTPRouteMatch, had))
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.maxDistance, b.maxDistance), cmp.Compare(a.index, b.index))
	})
	best, letters := closestMatches{max: most}, maxComparedPairs
	for _, c := range all {
		if best.full() && !best.isCloser(c.minDistance, c.index) {
			continue
		}
		if letters -= len(c.path) * len(c.otherPath); letters < 0 {
			break
		}
		best.add(r, c.index, c.exactDistance())
	}
	return best.all
}

// candidate is a match of a route, with bounds of its distance to the match of a trigger.
// The exact distance requires comparing the paths character by character.
type candidate struct {
	index                    int
	minDistance, maxDistance int
	otherDistance            int    // distance of everything but the values of the paths
	path, otherPath          string // the parts that differ
	isPrefix                 bool   // one path is a prefix of the other
}

func newCandidate(place int, m, had *gatewayv1.HTTPRouteMatch) candidate {
	c := candidate{index: place, otherDistance: distanceExceptPath(m, had)}
	c.minDistance, c.maxDistance = c.otherDistance, c.otherDistance
	if m.Path == nil {
		return c
	}
	a, b := truncatePath(pathValue(m.Path)), truncatePath(pathValue(had.Path))
	c.isPrefix = a != "/" && b != "/" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
	c.path, c.otherPath = differingParts(a, b)
	c.minDistance += c.pathDistance(max(len(c.path)-len(c.otherPath), len(c.otherPath)-len(c.path)))
	c.maxDistance += c.pathDistance(max(len(c.path), len(c.otherPath)))
	return c
}

func (c *candidate) exactDistance() int {
	return c.otherDistance + c.pathDistance(editdistance.Between(c.path, c.otherPath))
}

// pathDistance returns the distance of paths that differ in a number of characters. A
// path that is a prefix of the other counts half.
func (c *candidate) pathDistance(letters int) int {
	if c.isPrefix {
		letters = (letters + 1) / 2
	}
	return 2 * letters
}

// Limits of comparing paths: maxComparedPath is the number of characters of a path,
// maxComparedPairs the number of pairs of characters of all paths.
const (
	maxComparedPath  = 128
	maxComparedPairs = 1 << 19
)

func truncatePath(path string) string { return path[:min(len(path), maxComparedPath)] }

// differingParts returns two paths without their common prefix and suffix.
func differingParts(a, b string) (left, right string) {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// Distances of values. Different paths have larger ones.
const (
	typeDiffers  = 2
	valueDiffers = 3
	valueMissing = 4
)

// distanceExceptPath returns the distance of two matches without the values of their
// paths.
func distanceExceptPath(m, had *gatewayv1.HTTPRouteMatch) int {
	n := 0
	if m.Path != nil && pathType(m.Path) != pathType(had.Path) {
		n += typeDiffers
	}
	if m.Method != nil {
		n += valueDistance(had.Method != nil, had.Method != nil && *m.Method == *had.Method)
	}
	for _, h := range m.Headers {
		i := slices.IndexFunc(had.Headers, func(o gatewayv1.HTTPHeaderMatch) bool { return strings.EqualFold(string(h.Name), string(o.Name)) })
		n += valueDistance(i >= 0, i >= 0 && had.Headers[i].Value == h.Value &&
			valueOr(had.Headers[i].Type, gatewayv1.HeaderMatchExact) == valueOr(h.Type, gatewayv1.HeaderMatchExact))
	}
	for _, q := range m.QueryParams {
		i := slices.IndexFunc(had.QueryParams, func(o gatewayv1.HTTPQueryParamMatch) bool { return q.Name == o.Name })
		n += valueDistance(i >= 0, i >= 0 && had.QueryParams[i].Value == q.Value &&
			valueOr(had.QueryParams[i].Type, gatewayv1.QueryParamMatchExact) == valueOr(q.Type, gatewayv1.QueryParamMatchExact))
	}
	return n
}

func valueDistance(present, equal bool) int {
	switch {
	case equal:
		return 0
	case present:
		return valueDiffers
	default:
		return valueMissing
	}
}

// closestMatches keeps the closest of the matches that are added, each text once.
type closestMatches struct {
	max int
	all []scored
}

type scored struct {
	index, distance int
	text            string
}

func (c *closestMatches) full() bool { return len(c.all) == c.max }

// isCloser reports whether a match is among the closest.
func (c *closestMatches) isCloser(far, place int) bool {
	last := c.all[len(c.all)-1]
	return cmp.Or(cmp.Compare(far, last.distance), cmp.Compare(place, last.index)) < 0
}

func (c *closestMatches) add(r *Route, place, far int) {
	if c.full() && !c.isCloser(far, place) {
		return
	}
	s := scored{place, far, matchText(&r.matches[place])}
	if i := slices.IndexFunc(c.all, func(o scored) bool { return o.text == s.text }); i >= 0 {
		c.all[i].index = min(c.all[i].index, place)
	} else {
		c.all = append(c.all, s)
	}
	slices.SortFunc(c.all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.index, b.index))
	})
	c.all = c.all[:min(len(c.all), c.max)]
}

// ruleOf returns the rule that has a match.
func (r *Route) ruleOf(match int) int {
	rule, has := slices.BinarySearch(r.ruleStarts, match)
	if !has {
		return rule - 1
	}
	for r.ruleStarts[rule+1] == match {
		rule++ // a rule without matches
	}
	return rule
}
