package commands

import (
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// renderedLimits are the rendered limits of each gateway, and the status of those
// that are not rendered.
type renderedLimits struct {
	byEntryPoint map[entryPoint]*ratelimit.Rendering
	limits       map[limitRef]*limitStatus
	// unrecognized are the limits of each policy in another format than the RFC's.
	unrecognized map[api.Ref]map[string]bool
	// gates are rules that decide whether rendered limits apply.
	gates       map[limitRef]bool
	boundLimits boundLimits
}

// entryPoint is the gateway, or in a mesh the Service, through which requests
// come in, and a policy kind.
type entryPoint struct {
	kind   api.PolicyKind
	object api.Ref
}

// limitRef identifies a limit by its policy and rule.
type limitRef struct {
	policy api.Ref
	rule   string
}

func (l limitRef) String() string { return l.rule + " of " + l.policy.String() }

func compareLimits(a, b limitRef) int {
	if c := api.CompareRefs(a.policy, b.policy); c != 0 {
		return c
	}
	return strings.Compare(a.rule, b.rule)
}

// limitStatus is the status of a limit over all paths on which it is in effect.
type limitStatus struct {
	bound      bool
	shadowedBy map[limitRef]bool
	// unsetSelectors are selectors whose value no gateway sets.
	unsetSelectors []string
}

func newRenderedLimits() *renderedLimits {
	return &renderedLimits{
		byEntryPoint: make(map[entryPoint]*ratelimit.Rendering), limits: make(map[limitRef]*limitStatus),
		unrecognized: make(map[api.Ref]map[string]bool), gates: make(map[limitRef]bool),
		boundLimits: make(boundLimits),
	}
}

// add adds the limits in effect on a path.
func (r *renderedLimits) add(e *effective.Effective) {
	if e.Path.Route == nil {
		return
	}
	bound := e.Bound()
	r.addUnrecognized(e, bound)
	if bound == nil {
		return
	}
	holder := bound.Holder()
	for place, rule := range bound.Rules {
		f := r.status(limitRefOf(e, rule), bound.Limits[place].Limit)
		switch {
		case place == holder:
			f.bound = true
		case bound.Limits[place].Matches(e.Path.Rule):
			f.shadowedBy[limitRefOf(e, bound.Rules[holder])] = true
		}
	}
	if holder >= 0 {
		r.addBound(e, bound.Rules[holder], &bound.Limits[holder])
	}
}

// limitRefOf returns the reference of a rule in effect on a path.
func limitRefOf(e *effective.Effective, rule *merge.Effective) limitRef {
	return limitRef{e.Ref(rule.From.Policy), rule.Key.String()}
}

func (r *renderedLimits) status(of limitRef, l *ratelimit.Limit) *limitStatus {
	f := r.limits[of]
	if f == nil {
		f = &limitStatus{shadowedBy: make(map[limitRef]bool), unsetSelectors: l.UnsetSelectors()}
		r.limits[of] = f
	}
	return f
}

// addUnrecognized adds the limits on a path that are not in the format of the RFC.
func (r *renderedLimits) addUnrecognized(e *effective.Effective, bound *effective.Bound) {
	for i := range e.Rules {
		rule := &e.Rules[i]
		if _, binds := e.Kind.Binds(rule.Key); !binds || rule.Value == nil || bound.Place(rule.Key) >= 0 {
			continue
		}
		l := limitRefOf(e, rule)
		if r.unrecognized[l.policy] == nil {
			r.unrecognized[l.policy] = make(map[string]bool)
		}
		r.unrecognized[l.policy][l.rule] = true
	}
}

// addBound adds a limit that is bound to the rule of the path.
func (r *renderedLimits) addBound(e *effective.Effective, rule *merge.Effective, l *ratelimit.Bound) {
	at := entryPoint{e.Kind.Ref(), entryPointOf(e.Path)}
	if r.byEntryPoint[at] == nil {
		r.byEntryPoint[at] = ratelimit.NewRendering(at.object.Key())
	}
	from := ratelimit.Source{Policy: e.Ref(rule.From.Policy).Key(), Block: rule.From.Block.String()}
	r.byEntryPoint[at].Add(from, l, e.Path.Route, e.Path.Rule, e.Path.Hosts())
	r.boundLimits.add(boundRule{at, e.Path.Element(gateway.LevelRule).String(), e.Path.Route.Ref(), e.Path.Rule}, limitRefOf(e, rule), e.Path.Hosts())
	for i := range e.Rules {
		if gate := &e.Rules[i]; gate.Value != nil && e.Kind.IsGate(gate.Key) {
			r.gates[limitRefOf(e, gate)] = true
		}
	}
}

// entryPointOf returns the gateway of a path, or in a mesh the Service.
func entryPointOf(p gateway.Path) api.Ref {
	if p.Gateway != nil {
		return p.Gateway.Ref()
	}
	return p.Service.Ref()
}

// items returns the rendered limits, sorted by policy kind and gateway.
func (r *renderedLimits) items() []api.RenderedLimits {
	var out []api.RenderedLimits
	for _, at := range slices.SortedFunc(maps.Keys(r.byEntryPoint), func(a, b entryPoint) int {
		if c := api.ComparePolicyKinds(a.kind, b.kind); c != 0 {
			return c
		}
		return api.CompareRefs(a.object, b.object)
	}) {
		item := api.RenderedLimits{PolicyKind: at.kind}
		if at.object.Kind == gateway.KindService {
			item.Service = &at.object
		} else {
			item.Gateway = &at.object
		}
		item.GatewayActions, item.Limits = r.byEntryPoint[at].Documents()
		out = append(out, item)
	}
	return out
}
