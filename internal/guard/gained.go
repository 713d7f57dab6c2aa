package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// gainedRules are the rules of policies that a route gets which is created, by the number
// of its paths.
type gainedRules map[gainedKey]int

type gainedKey struct {
	rules  string
	policy api.Ref
}

// createsRoute reports whether the write creates a route.
func (ev *evaluation) createsRoute() bool {
	_, ok := ev.change.After.(*gateway.Route)
	return ok && ev.change.Before == nil
}

// addGained adds what a new path gets from policies.
func (ev *evaluation) addGained(p effective.Pair) {
	if p.Before != nil || !ev.createsRoute() {
		return
	}
	if ev.gained == nil {
		ev.gained = make(gainedRules)
	}
	k := p.After.Kind
	ev.blast.kinds[k.Ref()].newPaths++
	on := make(map[gainedKey]bool)
	for i := range p.After.Rules {
		r := &p.After.Rules[i]
		if r.Value == nil {
			continue
		}
		key := gainedKey{k.GroupName(r.Key, k.GroupDepth(r.Key)), p.After.Ref(r.From.Policy)}
		if !on[key] {
			on[key] = true
			ev.gained[key]++
		}
	}
}

// list returns the rules by policy and name.
func (g gainedRules) list() []api.GainedRules {
	var out []api.GainedRules
	for k, n := range g {
		out = append(out, api.GainedRules{Rules: k.rules, Policy: k.policy, Paths: n})
	}
	slices.SortFunc(out, func(a, b api.GainedRules) int {
		return cmp.Or(api.CompareRefs(a.Policy, b.Policy), strings.Compare(a.Rules, b.Rules))
	})
	return out
}

// reportGained tells the writer of a new route what it gets from policies of other
// namespaces.
func (ev *evaluation) reportGained() {
	route := ev.change.Object().Ref()
	others := slices.DeleteFunc(ev.gained.list(), func(g api.GainedRules) bool { return g.Policy.Namespace == route.Namespace })
	if len(others) > 0 {
		ev.report(api.ReasonBlastRadius, api.Warn, Finding{What: fmt.Sprintf("%s gets %s", objectText(ev.change), api.GainedText(others))})
	}
}
