package commands

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// boundLimits are the rules of routes with the limits that are bound to each, and
// the hosts for which they are. Listeners of one gateway may bind different
// limits to a rule, which the documents, keyed by host, cannot express.
type boundLimits map[boundRule]map[limitRef]map[string]bool

// boundRule is a rule of a route at a gateway.
type boundRule struct {
	entryPoint entryPoint
	rule       string // name to display
	// route and index identify the rule
	route api.Ref
	index int
}

func (d boundLimits) add(at boundRule, l limitRef, hosts []string) {
	if d[at] == nil {
		d[at] = make(map[limitRef]map[string]bool)
	}
	if d[at][l] == nil {
		d[at][l] = make(map[string]bool)
	}
	for _, h := range hosts {
		d[at][l][h] = true
	}
}

// conflicts returns a description of each pair of limits that are bound to one
// rule for requests to the same host, sorted.
func (d boundLimits) conflicts() []string {
	var out []string
	for at, limits := range d {
		all := slices.SortedFunc(maps.Keys(limits), compareLimits)
		for i, l := range all {
			for _, o := range all[i+1:] {
				if hostnamesOverlap(limits[l], limits[o]) {
					out = append(out, fmt.Sprintf("%s and %s on %s at %s", l, o, at.rule, at.entryPoint.object))
				}
			}
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

func hostnamesOverlap(a, b map[string]bool) bool {
	for h := range a {
		for o := range b {
			if gateway.HostnamesIntersect(h, o) {
				return true
			}
		}
	}
	return false
}
