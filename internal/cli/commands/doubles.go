package commands

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// doubles are the rules of routes with the limits that are bound to them, and for
// which hosts: policies of listeners may differ, and the documents know hosts alone.
type doubles map[ruleAt]map[limitOf]map[string]bool

// ruleAt is a rule of a route at a gateway.
type ruleAt struct {
	root root
	rule string // for people
	// route and its rule: the identity of a rule is its place
	route api.Ref
	index int
}

func (d doubles) add(at ruleAt, l limitOf, hosts []string) {
	if d[at] == nil {
		d[at] = make(map[limitOf]map[string]bool)
	}
	if d[at][l] == nil {
		d[at][l] = make(map[string]bool)
	}
	for _, h := range hosts {
		d[at][l][h] = true
	}
}

// sorted names the rules to which several limits are bound for requests to the same
// host.
func (d doubles) sorted() []string {
	var out []string
	for at, limits := range d {
		all := slices.SortedFunc(maps.Keys(limits), compareLimits)
		for i, l := range all {
			for _, o := range all[i+1:] {
				if meet(limits[l], limits[o]) {
					out = append(out, fmt.Sprintf("%s and %s on %s at %s", l, o, at.rule, at.root.at))
				}
			}
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

func meet(a, b map[string]bool) bool {
	for h := range a {
		for o := range b {
			if gateway.HostnamesIntersect(h, o) {
				return true
			}
		}
	}
	return false
}
