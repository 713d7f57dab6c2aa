package lookup

import (
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// reachSummary is where a policy has an effect, summed over paths.
type reachSummary struct {
	policy                               api.Ref
	holding, total                       int
	rules                                map[string]bool
	gateways, services, routes, backends refs
	listeners                            []api.PathElement
}

// refs is a set of objects.
type refs map[api.Ref]bool

func (r *refs) add(ref api.Ref) {
	if *r == nil {
		*r = make(refs)
	}
	(*r)[ref] = true
}

func (r refs) sorted() []api.Ref { return slices.SortedFunc(maps.Keys(r), api.CompareRefs) }

// add adds a path and the outcome of the policy on it.
func (r *reachSummary) add(e *effective.Effective, o *merge.Outcome, rule *merge.Name) {
	r.total++
	keys := effectiveRules(o, rule)
	if len(keys) == 0 {
		return
	}
	r.holding++
	if r.rules == nil {
		r.rules = make(map[string]bool)
	}
	for _, k := range keys {
		r.rules[k.String()] = true
	}
	p := e.Path
	if p.Gateway != nil {
		r.gateways.add(p.Gateway.Ref())
	}
	if p.Listener != nil {
		r.listeners = append(r.listeners, p.Element(gateway.LevelListener))
	}
	if p.Service != nil {
		r.services.add(p.Service.Ref())
	}
	if p.Route != nil {
		r.routes.add(p.Route.Ref())
	}
	if p.Backend != nil {
		r.backends.add(p.Backend.Object)
	}
	if p.Virtual != nil {
		r.backends.add(*p.Virtual)
	}
}

// effectiveRules returns the rules of a policy that took part on a path and were
// not lost (SEMANTICS section 6).
func effectiveRules(o *merge.Outcome, rule *merge.Name) []merge.Key {
	var keys []merge.Key
	for _, b := range o.Blocks() {
		if !o.BlockApplied(b.Block) {
			continue
		}
		for _, r := range b.Rules {
			if (rule == nil || rule.Matches(r.Key)) && !isLost(o, r.Key) {
				keys = append(keys, r.Key)
			}
		}
	}
	return keys
}

func isLost(o *merge.Outcome, k merge.Key) bool {
	return slices.ContainsFunc(o.Lost, func(l merge.Lost) bool { return l.Key == k })
}

// api returns the summary in the form of the JSON contract.
func (r *reachSummary) api(policy api.Ref, rule *merge.Name) api.Reach {
	out := api.Reach{
		Policy: policy, Rules: append([]string{}, slices.Sorted(maps.Keys(r.rules))...),
		Gateways: append([]api.Ref{}, r.gateways.sorted()...), Services: r.services.sorted(),
		Routes: append([]api.Ref{}, r.routes.sorted()...), Backends: r.backends.sorted(),
		Paths: api.ReachPaths{Holding: r.holding, Total: r.total},
	}
	if rule != nil {
		out.Rule = rule.String()
	}
	slices.SortFunc(r.listeners, func(a, b api.PathElement) int {
		return api.ComparePaths([]api.PathElement{a}, []api.PathElement{b})
	})
	out.Listeners = slices.Compact(r.listeners)
	return out
}
