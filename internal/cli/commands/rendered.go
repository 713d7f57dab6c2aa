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

// renderings are what limits come to at each gateway, and what became of those that
// do not appear there.
type renderings struct {
	binder effective.Binder
	at     map[root]*ratelimit.Rendering
	limits map[limitOf]*fate
	// unread are rules that are limits, written in another way.
	unread map[api.Ref]map[string]bool
	// gates are rules that decide whether limits that are rendered hold.
	gates map[limitOf]bool
	twice doubles
}

// root is where requests come in, of one kind of policies.
type root struct {
	kind api.PolicyKind
	at   api.Ref
}

// limitOf is a rule and the policy that it is from.
type limitOf struct {
	policy api.Ref
	rule   string
}

func (l limitOf) String() string { return l.rule + " of " + l.policy.String() }

func compareLimits(a, b limitOf) int {
	if c := api.CompareRefs(a.policy, b.policy); c != 0 {
		return c
	}
	return strings.Compare(a.rule, b.rule)
}

// fate is what became of a limit over all paths that it is in force on.
type fate struct {
	bound      bool
	shadowedBy map[limitOf]bool
	// beyond are selectors whose value no gateway adds.
	beyond []string
}

func newRenderings() *renderings {
	return &renderings{
		at: make(map[root]*ratelimit.Rendering), limits: make(map[limitOf]*fate),
		unread: make(map[api.Ref]map[string]bool), gates: make(map[limitOf]bool),
		twice: make(doubles),
	}
}

// add books the limits in force on a path.
func (r *renderings) add(e *effective.Effective) {
	if e.Path.Route == nil {
		return
	}
	bound := r.binder.Bind(e)
	r.addUnread(e, bound)
	if bound == nil {
		return
	}
	holder := bound.Holder()
	for place, rule := range bound.Rules {
		f := r.fate(of(e, rule), bound.Binding.Limits[place].Limit)
		switch {
		case place == holder:
			f.bound = true
		case bound.Binding.Limits[place].Matches(e.Path.Rule):
			f.shadowedBy[of(e, bound.Rules[holder])] = true
		}
	}
	if holder >= 0 {
		r.addBound(e, bound.Rules[holder], &bound.Binding.Limits[holder])
	}
}

// of names a rule in force on a path.
func of(e *effective.Effective, rule *merge.Effective) limitOf {
	return limitOf{e.Ref(rule.From.Policy), rule.Key.String()}
}

func (r *renderings) fate(of limitOf, l *ratelimit.Limit) *fate {
	f := r.limits[of]
	if f == nil {
		f = &fate{shadowedBy: make(map[limitOf]bool), beyond: l.UnsetSelectors()}
		r.limits[of] = f
	}
	return f
}

// addUnread books the limits on a path that are not read, as they are not written
// as limits with triggers are.
func (r *renderings) addUnread(e *effective.Effective, bound *effective.Bound) {
	for i := range e.Rules {
		rule := &e.Rules[i]
		if _, binds := e.Kind.Binds(rule.Key); !binds || rule.Value == nil || bound != nil && bound.Place(rule.Key) >= 0 {
			continue
		}
		l := of(e, rule)
		if r.unread[l.policy] == nil {
			r.unread[l.policy] = make(map[string]bool)
		}
		r.unread[l.policy][l.rule] = true
	}
}

// addBound books that a limit is bound to the path's rule.
func (r *renderings) addBound(e *effective.Effective, rule *merge.Effective, l *ratelimit.Bound) {
	at := root{e.Kind.Ref(), rootOf(e.Path)}
	if r.at[at] == nil {
		r.at[at] = ratelimit.NewRendering(at.at.Key())
	}
	from := ratelimit.Source{Policy: e.Ref(rule.From.Policy).Key(), Block: rule.From.Block.String()}
	r.at[at].Add(from, l, e.Path.Route, e.Path.Rule, e.Path.Hosts())
	r.twice.add(ruleAt{at, e.Path.Element(gateway.LevelRule).String(), e.Path.Route.Ref(), e.Path.Rule}, of(e, rule), e.Path.Hosts())
	for i := range e.Rules {
		if gate := &e.Rules[i]; gate.Value != nil && e.Kind.IsGate(gate.Key) {
			r.gates[of(e, gate)] = true
		}
	}
}

// rootOf returns the gateway of a path, or in a mesh the Service.
func rootOf(p gateway.Path) api.Ref {
	if p.Gateway != nil {
		return p.Gateway.Ref()
	}
	return p.Service.Ref()
}

// items returns the documents in order.
func (r *renderings) items() []api.RenderedLimits {
	var out []api.RenderedLimits
	for _, at := range slices.SortedFunc(maps.Keys(r.at), func(a, b root) int {
		if c := api.ComparePolicyKinds(a.kind, b.kind); c != 0 {
			return c
		}
		return api.CompareRefs(a.at, b.at)
	}) {
		item := api.RenderedLimits{PolicyKind: at.kind}
		if at.at.Kind == gateway.KindService {
			item.Service = &at.at
		} else {
			item.Gateway = &at.at
		}
		item.GatewayActions, item.Limits = r.at[at].Documents()
		out = append(out, item)
	}
	return out
}
