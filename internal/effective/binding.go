package effective

import (
	"cmp"
	"slices"
	"strings"

	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// Limits are the rules in force that bind to rules of routes by triggers, in the order
// in which they bind: by name.
type Limits struct {
	*ratelimit.Limits
	// Rules of the limits, in the same order.
	Rules []*merge.Effective
}

// Place returns the index of the limit with a rule key, or -1.
func (l *Limits) Place(k merge.Key) int {
	return slices.IndexFunc(l.Rules, func(r *merge.Effective) bool { return r.Key == k })
}

// Limits returns the limits in force on the path. It returns nil if there are none or
// they cannot bind there: the path ends above the rules of a route, or the route is not
// for HTTP requests. Paths with the same fold share them.
func (e *Effective) Limits() *Limits { return e.limits(make(readRules)) }

// readRules caches the limits of rules: one rule of a gateway's policy is in the folds
// of many routes.
type readRules map[*merge.Rule]*ratelimit.Limits

func (e *Effective) limits(known readRules) *Limits {
	if e.folded == nil || !e.folded.binds || e.Path.Route == nil || e.Path.Rule < 0 ||
		e.Path.Route.Kind != gateway.KindHTTPRoute && e.Path.Route.Kind != gateway.KindGRPCRoute {
		return nil
	}
	e.folded.read.Do(func() { e.folded.limits = e.readLimits(known) })
	return e.folded.limits
}

func (e *Effective) readLimits(known readRules) *Limits {
	type limit struct {
		name string
		rule *merge.Effective
		*ratelimit.Limits
	}
	var found []limit
	for i := range e.Rules {
		r := &e.Rules[i]
		name, ok := e.Kind.Binds(r.Key)
		if !ok || r.Value == nil {
			continue
		}
		if l := known.limit(name, r.Rule); l != nil {
			found = append(found, limit{name, r, l})
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b limit) int {
		return cmp.Or(strings.Compare(a.name, b.name), a.rule.Key.Compare(b.rule.Key))
	})
	out, all := &Limits{}, make([]*ratelimit.Limits, len(found))
	for i, l := range found {
		all[i], out.Rules = l.Limits, append(out.Rules, l.rule)
	}
	out.Limits = ratelimit.Join(all)
	return out
}

// limit returns the limit of a rule, nil if it is not one that binds.
func (known readRules) limit(name string, r *merge.Rule) *ratelimit.Limits {
	if l, ok := known[r]; ok {
		return l
	}
	var out *ratelimit.Limits
	if value := merge.Plain(r.Value); ratelimit.IsRateLimit(value) {
		if l, errs := ratelimit.Read(fieldpath.NewPath(r.Key.String()), name, value); len(errs) == 0 { // otherwise its policy is invalid
			out = ratelimit.NewLimits([]*ratelimit.Limit{l})
		}
	}
	known[r] = out
	return out
}

// Bound has the limits in force on a path, and their binding to its route.
type Bound struct {
	*Limits
	*ratelimit.Binding
	rule int
}

// Holder returns the index of the limit that is bound to the path's rule, or -1.
func (b *Bound) Holder() int { return b.First(b.rule) }

// Matching returns the indexes of the limits that match the path's rule: the first is
// bound to it, the others are shadowed.
func (b *Bound) Matching() []int { return b.At(b.rule) }

// Binds reports whether the limit at an index is bound to the path's rule.
func (b *Bound) Binds(place int) bool { return place >= 0 && b.Holder() == place }

// Binder binds the limits of paths. It caches the last route and binding: paths come
// route by route. The zero Binder is ready to use. It is not safe for concurrent use.
type Binder struct {
	route   *gateway.Route
	index   *ratelimit.Route
	hosts   []string
	limits  *Limits
	binding *ratelimit.Binding
	known   readRules
	before  *Binder // that binds the same paths before a change, or nil
}

// After returns a Binder for the paths after a change that b binds before it. A route
// that did not change is indexed once for both.
func (b *Binder) After() Binder { return Binder{before: b} }

// Bind binds the limits in force on a path. It returns nil if there are none that can
// bind.
func (b *Binder) Bind(e *Effective) *Bound {
	if e == nil {
		return nil
	}
	if b.known == nil && e.folded != nil && e.folded.binds {
		b.known = make(readRules)
	}
	limits := e.limits(b.known)
	if limits == nil {
		return nil
	}
	if b.route != e.Path.Route {
		b.route, b.index, b.limits = e.Path.Route, nil, nil
	}
	if b.index == nil && limits.Triggered() { // else what the rules match does not matter
		b.index = b.indexed(e.Path.Route)
	}
	if hosts := e.Path.Hosts(); b.limits != limits || !slices.Equal(b.hosts, hosts) {
		b.limits, b.hosts, b.binding = limits, hosts, limits.Bind(b.index, hosts)
	}
	return &Bound{Limits: limits, Binding: b.binding, rule: e.Path.Rule}
}

func (b *Binder) indexed(r *gateway.Route) *ratelimit.Route {
	if o := b.before; o != nil && o.route == r && o.index != nil {
		return o.index
	}
	return ratelimit.NewRoute(r)
}

// Alone returns the effective policy of a single policy, as if it were alone on a path and
// the conditions of its blocks were met.
func Alone(p *policykind.Policy) *Effective {
	alone := p.Policy
	alone.Blocks = slices.Clone(p.Blocks)
	for i := range alone.Blocks {
		alone.Blocks[i].When = nil
	}
	layers := []merge.Layer{{Policy: &alone}}
	result, _ := merge.Fold(layers, nil) // only a meter has errors
	return &Effective{Kind: p.Kind, Layers: layers, Result: result}
}

// Standalone returns the effective policy of a single policy on the first rule of a
// route, to bind its limits: the route need not be attached to a gateway. If several
// blocks have the same key, the last one applies.
func Standalone(p *policykind.Policy, r *gateway.Route) *Effective {
	f := &folded{layers: []merge.Layer{{Policy: &p.Policy, Level: int(gateway.LevelRoute)}}, Result: &merge.Result{}, binds: p.Binds}
	for i := range p.Blocks {
		for n := range p.Blocks[i].Rules {
			rule := &p.Blocks[i].Rules[n]
			f.Rules = slices.DeleteFunc(f.Rules, func(had merge.Effective) bool { return had.Key == rule.Key })
			f.Rules = append(f.Rules, merge.Effective{Rule: rule, From: merge.Origin{Policy: &p.Policy, Block: p.Blocks[i].Block}})
		}
	}
	return &Effective{Kind: p.Kind, Path: gateway.Path{Route: r}, Layers: f.layers, Result: f.Result, folded: f}
}

// Bindings returns the bindings of the limits in force on the path, in the order in
// which they bind.
func (e *Effective) Bindings(b *Binder) []api.Binding {
	bound := b.Bind(e)
	if bound == nil {
		return nil
	}
	var out []api.Binding
	holder := bound.Holder()
	for i, r := range bound.Rules {
		l := &bound.Binding.Limits[i]
		x := api.Binding{Rule: r.Key.String(), From: e.Ref(r.From.Policy), Block: r.From.Block.String()}
		switch {
		case i == holder:
			x.State = api.BindingBound
		case l.Matches(e.Path.Rule):
			x.State, x.ShadowedBy = api.BindingShadowed, bound.Rules[holder].Key.String()
		default:
			x.State = api.BindingUnmatched
		}
		x.By, x.AlsoMatches = l.By(e.Path.Rule), l.AlsoMatches(e.Path.Rule)
		x.Hostnames = l.Hostnames(e.Path.Rule)
		if x.State == api.BindingUnmatched {
			x.Hostnames = l.ExcludingHostnames(e.Path.Rule)
		}
		out = append(out, x)
	}
	return out
}
