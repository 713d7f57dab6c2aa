package commands

import (
	"cmp"
	"fmt"
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
	bound        boundLimits
	// unrecognized are limits in another format than the RFC's, and gates the rules that
	// decide whether rendered limits apply.
	unrecognized, gates []limitRef
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
	return cmp.Or(api.CompareRefs(a.policy, b.policy), strings.Compare(a.rule, b.rule))
}

// sortedLimits sorts limits, and removes those that are there twice.
func sortedLimits(all []limitRef) []limitRef {
	return slices.Compact(slices.SortedFunc(slices.Values(all), compareLimits))
}

// limitStatus is the status of a limit over all paths on which it is in effect.
type limitStatus struct {
	bound      bool
	shadowedBy []limitRef
	// unsetSelectors are selectors whose value no gateway sets.
	unsetSelectors []string
}

// boundLimits are the limits that are bound to each rule of a route, with the hosts for which
// they are. Listeners of one gateway may bind different limits to a rule, which the documents,
// keyed by host, cannot express.
type boundLimits map[boundRule][]boundLimit

// boundRule is a rule of a route at a gateway.
type boundRule struct {
	entryPoint entryPoint
	rule       string // name to display
	// route and index identify the rule
	route api.Ref
	index int
}

type boundLimit struct {
	limitRef
	hosts []string
}

// conflicts returns a description of each pair of limits that are bound to one
// rule for requests to the same host, sorted.
func (d boundLimits) conflicts() []string {
	var out []string
	for at, limits := range d {
		slices.SortFunc(limits, func(a, b boundLimit) int { return compareLimits(a.limitRef, b.limitRef) })
		for i, l := range limits {
			for _, o := range limits[i+1:] {
				if l.limitRef != o.limitRef && gateway.HostsIntersect(l.hosts, o.hosts) {
					out = append(out, fmt.Sprintf("%s and %s on %s at %s", l, o, at.rule, at.entryPoint.object))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func newRenderedLimits() *renderedLimits {
	return &renderedLimits{
		byEntryPoint: make(map[entryPoint]*ratelimit.Rendering), limits: make(map[limitRef]*limitStatus), bound: make(boundLimits),
	}
}

// add adds the limits in effect on a path.
func (r *renderedLimits) add(e *effective.Effective) {
	if e.Path.Route == nil {
		return
	}
	bound := e.Bound()
	for i := range e.Rules {
		rule := &e.Rules[i]
		if _, binds := e.Kind.Binds(rule.Key); binds && rule.Value != nil && bound.Place(rule.Key) < 0 {
			r.unrecognized = append(r.unrecognized, limitRefOf(e, rule))
		}
	}
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
			f.shadowedBy = append(f.shadowedBy, limitRefOf(e, bound.Rules[holder]))
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
		f = &limitStatus{unsetSelectors: l.UnsetSelectors()}
		r.limits[of] = f
	}
	return f
}

// addBound adds a limit that is bound to the rule of the path.
func (r *renderedLimits) addBound(e *effective.Effective, rule *merge.Effective, l *ratelimit.Bound) {
	at := entryPoint{e.Kind.Ref(), entryPointOf(e.Path)}
	if r.byEntryPoint[at] == nil {
		r.byEntryPoint[at] = ratelimit.NewRendering(at.object.Key())
	}
	from := ratelimit.Source{Policy: e.Ref(rule.From.Policy).Key(), Block: rule.From.Block.String()}
	r.byEntryPoint[at].Add(from, l, e.Path.Route, e.Path.Rule, e.Path.Hosts())
	on := boundRule{at, e.Path.Element(gateway.LevelRule).String(), e.Path.Route.Ref(), e.Path.Rule}
	r.bound[on] = append(r.bound[on], boundLimit{limitRefOf(e, rule), e.Path.Hosts()})
	for i := range e.Rules {
		if gate := &e.Rules[i]; gate.Value != nil && e.Kind.IsGate(gate.Key) {
			r.gates = append(r.gates, limitRefOf(e, gate))
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
		return cmp.Or(api.ComparePolicyKinds(a.kind, b.kind), api.CompareRefs(a.object, b.object))
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
