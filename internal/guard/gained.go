package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// gainedRules are the rules of policies that a route gets which is created, by the number
// of its paths, and those that it does not get.
type gainedRules map[gainedKey]int

type gainedKey struct {
	rules  string
	policy api.Ref
	// by is a policy of the route that takes the place of rules of one above it, with no others
	// to follow them: a policy that waited for the route, say. It is zero for what the route gets.
	by api.Ref
}

// addGained adds what a path gets from policies if it is of a route that is created, and
// reports whether it is.
func (ev *blastRadius) addGained(p effective.Pair) bool {
	if _, ok := ev.change.After.(*gateway.Route); !ok || ev.change.Before != nil || p.Before != nil {
		return false
	}
	if !p.Unreached {
		ev.gained.add(p.After)
		ev.gained.addMissed(p.After)
	}
	return true
}

// add adds the rules of policies that are in force on a path.
func (g *gainedRules) add(e *effective.Effective) {
	k, on := e.Kind, make(map[gainedKey]bool)
	for i := range e.Rules {
		r := &e.Rules[i]
		if r.Value == nil || r.Group.Disables || r.From.Block == merge.Object {
			continue
		}
		key := gainedKey{rules: k.GroupName(r.Key, k.GroupDepth(r.Key)), policy: e.Ref(r.From.Policy)}
		if !on[key] {
			on[key] = true
			put(g, key, (*g)[key]+1)
		}
	}
}

// Gained returns the rules of policies that a new path gets; nil for any other one, and for
// one that no request reaches.
func Gained(p effective.Pair) []api.GainedRules {
	if p.Before != nil || p.Unreached {
		return nil
	}
	var g gainedRules
	g.add(p.After)
	return g.list()
}

// addMissed adds what a new path would get without the policies below.
func (g *gainedRules) addMissed(e *effective.Effective) {
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		for _, l := range o.Lost {
			if l.To.Policy != o.Policy && !isOverridden(e, i, l) && !inPlace(e, l.Key, (&lostRule{disables: l.Group.Disables}).follows) {
				put(g, gainedKey{e.Kind.GroupName(l.Key, e.Kind.GroupDepth(l.Key)), e.Ref(o.Policy), e.Ref(l.To.Policy)}, 1)
			}
		}
	}
}

// missedText says what a route does not get, and why: "jwt of Policy infra/edge, since
// Policy app/web takes precedence".
func (g gainedRules) missedText(namespace string) string {
	keys := slices.SortedFunc(maps.Keys(g), func(a, b gainedKey) int {
		return cmp.Or(api.CompareRefs(a.policy, b.policy), api.CompareRefs(a.by, b.by), strings.Compare(a.rules, b.rules))
	})
	keys = slices.DeleteFunc(keys, func(k gainedKey) bool { return k.by == (api.Ref{}) || k.policy.Namespace == namespace })
	if len(keys) == 0 {
		return ""
	}
	var names []string
	for _, k := range keys {
		if k.policy == keys[0].policy && k.by == keys[0].by {
			names = append(names, k.rules)
		}
	}
	return fmt.Sprintf("%s of %s, since %s takes precedence", api.NamesText(names), keys[0].policy, keys[0].by) + api.More(", and ", len(keys)-len(names), "")
}

// list returns the rules that a route gets by policy and name.
func (g gainedRules) list() []api.GainedRules {
	var out []api.GainedRules
	for k, n := range g {
		if k.by == (api.Ref{}) {
			out = append(out, api.GainedRules{Rules: k.rules, Policy: k.policy, Paths: n})
		}
	}
	slices.SortFunc(out, func(a, b api.GainedRules) int {
		return cmp.Or(api.CompareRefs(a.Policy, b.Policy), strings.Compare(a.Rules, b.Rules))
	})
	return out
}

// reportGained tells the writer of a new route what it gets from policies of other
// namespaces, and what not.
func (ev *blastRadius) reportGained() {
	route := ev.change.Object().Ref()
	gained := ev.gained.list()
	others := slices.DeleteFunc(slices.Clone(gained), func(g api.GainedRules) bool { return g.Policy.Namespace == route.Namespace })
	missed := ev.gained.missedText(route.Namespace)
	what := objectText(ev.change)
	switch {
	case len(others) == 0 && missed == "":
		return
	case missed == "":
		what += " gets " + api.GainedText(others)
	case len(others) == 0:
		what += " does not get " + missed
	default:
		what += fmt.Sprintf(" gets %s, but not %s", api.GainedText(others), missed)
	}
	ev.report(api.ReasonBlastRadius, api.Warn, Finding{What: what, Repeats: missed == "" && len(others) == len(gained)})
}
