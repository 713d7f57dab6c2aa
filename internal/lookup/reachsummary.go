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
	policy         api.Ref
	holding, total int
	rules          map[string]bool
	objects        [4]map[api.Ref]bool
	listeners      []api.PathElement
}

// Indexes of reachSummary.objects.
const (
	gateways = iota
	services
	routes
	backends
)

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
		r.object(gateways, p.Gateway.Ref())
	}
	if p.Listener != nil {
		r.listeners = append(r.listeners, p.Element(gateway.LevelListener))
	}
	if p.Service != nil {
		r.object(services, p.Service.Ref())
	}
	if p.Route != nil {
		r.object(routes, p.Route.Ref())
	}
	if p.Backend != nil {
		r.object(backends, p.Backend.Object)
	}
	if p.Virtual != nil {
		r.object(backends, *p.Virtual)
	}
}

func (r *reachSummary) object(which int, ref api.Ref) {
	if r.objects[which] == nil {
		r.objects[which] = make(map[api.Ref]bool)
	}
	r.objects[which][ref] = true
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
		Gateways: append([]api.Ref{}, r.sorted(gateways)...), Services: r.sorted(services),
		Routes: append([]api.Ref{}, r.sorted(routes)...), Backends: r.sorted(backends),
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

func (r *reachSummary) sorted(which int) []api.Ref {
	return slices.SortedFunc(maps.Keys(r.objects[which]), api.CompareRefs)
}
