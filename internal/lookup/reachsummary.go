package lookup

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// newReach returns where a policy, or a rule of it, has an effect: so far nowhere.
func newReach(policy api.Ref, rule *merge.Name) *api.Reach {
	out := &api.Reach{Policy: policy, Rules: []string{}, Gateways: []api.Ref{}, Routes: []api.Ref{}}
	if rule != nil {
		out.Rule = rule.String()
	}
	return out
}

// addPath adds a path and the outcome of the policy on it.
func addPath(r *api.Reach, e *effective.Effective, o *merge.Outcome, rule *merge.Name) {
	r.Paths.Total++
	keys := effectiveRules(o, rule)
	if len(keys) == 0 {
		return
	}
	r.Paths.Holding++
	r.Rules = append(r.Rules, keys...)
	for on := range e.Path.Objects {
		switch on.Level {
		case gateway.LevelGateway:
			r.Gateways = append(r.Gateways, on.Ref)
		case gateway.LevelService:
			r.Services = append(r.Services, on.Ref)
		case gateway.LevelRoute:
			r.Routes = append(r.Routes, on.Ref)
		case gateway.LevelBackend:
			r.Backends = append(r.Backends, on.Ref)
		default: // a class, or a listener set, whose listener is listed
		}
	}
	if e.Path.Listener != nil {
		r.Listeners = append(r.Listeners, e.Path.Element(gateway.LevelListener))
	}
}

// sortReach sorts what addPath added, each once.
func sortReach(r *api.Reach) {
	for _, refs := range []*[]api.Ref{&r.Gateways, &r.Services, &r.Routes, &r.Backends} {
		*refs = sortedOnce(*refs, api.CompareRefs)
	}
	r.Rules = sortedOnce(r.Rules, strings.Compare)
	r.Listeners = sortedOnce(r.Listeners, func(a, b api.PathElement) int {
		return api.ComparePaths([]api.PathElement{a}, []api.PathElement{b})
	})
}

func sortedOnce[T comparable](all []T, compare func(a, b T) int) []T {
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}

// effectiveRules returns the rules of a policy that took part on a path and were
// not lost (SEMANTICS section 6).
func effectiveRules(o *merge.Outcome, rule *merge.Name) []string {
	var keys []string
	for _, b := range o.Blocks() {
		if !o.BlockApplied(b.Block) {
			continue
		}
		for _, r := range b.Rules {
			if (rule == nil || rule.Matches(r.Key)) && o.LostAt(r.Key) == nil {
				keys = append(keys, r.Key.String())
			}
		}
	}
	return keys
}
