package effective

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// limits are the rules in force that bind to rules of routes by triggers. Paths with the
// same fold share them.
type limits struct {
	// Rules of the limits, in the order in which they bind: by name.
	Rules []*merge.Effective
	// Triggered is set if any of the limits has triggers. Otherwise they bind to the rules of
	// all routes in the same way.
	Triggered bool

	all []*ratelimit.Limit // in the same order
}

// Bound has the limits in force on a path, and what they match of its route.
type Bound struct {
	*limits

	// Limits in the order of the rules.
	Limits ratelimit.Binding
	// On is the path.
	On *Effective
}

// Bound binds the limits in force on the path. It returns nil if there are none or they
// cannot bind there: the path ends above the rules of a route, or the route is not for
// HTTP requests. It is not safe for concurrent use with paths of the same walk.
func (e *Effective) Bound() *Bound {
	if e == nil || e.folded == nil || !e.folded.binds || e.Path.Route == nil || e.Path.Rule < 0 ||
		e.Path.Route.Kind != gateway.KindHTTPRoute && e.Path.Route.Kind != gateway.KindGRPCRoute {
		return nil
	}
	if e.bound == nil {
		e.bound = e.binder.bind(e)
	}
	return e.bound
}

// Place returns the index of the limit with a rule key, or -1.
func (b *Bound) Place(k merge.Key) int {
	if b == nil {
		return -1
	}
	return slices.IndexFunc(b.Rules, func(r *merge.Effective) bool { return r.Key == k })
}

// PlaceOf returns the index of the limit of the name and policy of a rule, or -1.
func (b *Bound) PlaceOf(r *merge.Effective) int {
	i := b.Place(r.Key)
	if i >= 0 && !b.Rules[i].From.Policy.Same(r.From.Policy) {
		return -1
	}
	return i
}

// Matches reports whether a limit of the name and policy of a rule matches the path's rule.
func (b *Bound) Matches(r *merge.Effective) bool {
	i := b.PlaceOf(r)
	return i >= 0 && b.Limits[i].Matches(b.On.Path.Rule)
}

// Holder returns the index of the limit that is bound to the path's rule, or -1.
func (b *Bound) Holder() int { return b.Limits.First(b.On.Path.Rule) }

// Shadowed returns the indexes of the limits that match the path's rule behind the one that
// is bound to it.
func (b *Bound) Shadowed() []int {
	matching := b.Limits.At(b.On.Path.Rule)
	return matching[min(1, len(matching)):]
}

// Holds reports whether an override is bound to the path's rule.
func (b *Bound) Holds(o Override) bool {
	i := b.Place(o.Key)
	return i >= 0 && b.Rules[i].From.Policy == o.Policy && b.Holder() == i
}

// Overrides reports whether a rule is an override of a policy at a level or above it.
func (b *Bound) Overrides(r *merge.Effective, level gateway.Level) bool {
	return r.From.Block == merge.Overrides && b.On.Level(r.From.Policy) <= level
}

// Why an override is not bound to a rule. Each is the beginning of a clause that ends
// with the name of the rule.
const (
	// Unmatched means that its triggers do not match the rule.
	Unmatched = "its triggers do not match"
	// HostnamesUnmatched means that its triggers match the rule only for hostnames by
	// which no request reaches it.
	HostnamesUnmatched = "no request for the hostnames of its triggers reaches"
)

// WhyUnbound returns why an override that is given on the path is not bound to its rule, in
// the same words for all rules: one of the constants, or a whole clause. It is "" where
// the override is bound, or where another override, as high or higher, takes its place.
func (b *Bound) WhyUnbound(o Override) string {
	i := b.Place(o.Key)
	if i < 0 {
		return ""
	}
	r, matches := b.Rules[i], b.Limits[i].Matches(b.On.Path.Rule)
	switch holder := b.Holder(); {
	case holder == i,
		matches && b.Overrides(b.Rules[holder], o.Level),
		!matches && !merge.Equal(r.Value, o.Value) && b.Overrides(r, o.Level):
		return ""
	case matches:
		return fmt.Sprintf("%s of %s, which precedes it by name, would be bound instead", b.Rules[holder].Key, b.On.Ref(b.Rules[holder].From.Policy))
	case len(b.Limits[i].Hostnames(b.On.Path.Rule)) > 0:
		return HostnamesUnmatched
	default:
		return Unmatched
	}
}

// maxBindings is how many are kept: paths come route by route.
const maxBindings = 4

// binder binds the limits of the paths of a walk. The zero binder is ready to use.
type binder struct {
	// read has the limits of rules, nil for those that do not bind: one rule of a gateway's
	// policy is in the folds of many routes.
	read     map[*merge.Rule]*ratelimit.Limit
	routes   map[*gateway.Route]*ratelimit.Route
	bindings map[boundAt]ratelimit.Binding
}

type boundAt struct {
	limits *limits
	route  *gateway.Route
	hosts  string
}

func (b *binder) bind(e *Effective) *Bound {
	e.folded.read.Do(func() { e.folded.limits = b.limitsOf(e) })
	l := e.folded.limits
	if l == nil {
		return nil
	}
	hosts := e.Path.Hosts()
	at := boundAt{l, e.Path.Route, strings.Join(hosts, " ")}
	binding, known := b.bindings[at]
	if !known {
		if b.bindings == nil || len(b.bindings) >= maxBindings {
			b.routes, b.bindings = make(map[*gateway.Route]*ratelimit.Route), make(map[boundAt]ratelimit.Binding)
		}
		var route *ratelimit.Route
		if l.Triggered { // else what the rules match does not matter
			if route = b.routes[e.Path.Route]; route == nil {
				route = ratelimit.NewRoute(e.Path.Route)
				b.routes[e.Path.Route] = route
			}
		}
		binding = ratelimit.Bind(l.all, route, hosts)
		b.bindings[at] = binding
	}
	return &Bound{l, binding, e}
}

func (b *binder) limitsOf(e *Effective) *limits {
	out := &limits{}
	for i := range e.Rules {
		r := &e.Rules[i]
		if name, ok := e.Kind.Binds(r.Key); ok && b.limit(name, r.Rule) != nil {
			out.Rules = append(out.Rules, r)
		}
	}
	if len(out.Rules) == 0 {
		return nil
	}
	slices.SortFunc(out.Rules, func(x, y *merge.Effective) int {
		return cmp.Or(strings.Compare(b.read[x.Rule].Name, b.read[y.Rule].Name), x.Key.Compare(y.Key))
	})
	for _, r := range out.Rules {
		l := b.read[r.Rule]
		out.all, out.Triggered = append(out.all, l), out.Triggered || len(l.Triggers) > 0
	}
	return out
}

// limit returns the limit of a rule, nil if it is not one that binds.
func (b *binder) limit(name string, r *merge.Rule) *ratelimit.Limit {
	l, known := b.read[r]
	if known {
		return l
	}
	if value := merge.Plain(r.Value); ratelimit.IsRateLimit(value) {
		l = ratelimit.Decode(name, value)
	}
	if b.read == nil {
		b.read = make(map[*merge.Rule]*ratelimit.Limit)
	}
	b.read[r] = l
	return l
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

// Standalone returns the effective policy of a single policy on each rule of a route that a
// section selects, "" for all, to bind its limits: the route need not be attached to a
// gateway, nor have rules. If several blocks have the same key, the last one applies: whether
// their conditions are met is not known.
func Standalone(p *policykind.Policy, r *gateway.Route, section string) []*Effective {
	f := &folded{layers: []merge.Layer{{Policy: &p.Policy, Level: int(gateway.LevelRoute)}}, Result: &merge.Result{}, binds: p.Binds}
	for i := range p.Blocks {
		for n := range p.Blocks[i].Rules {
			rule := &p.Blocks[i].Rules[n]
			f.Rules = slices.DeleteFunc(f.Rules, func(had merge.Effective) bool { return had.Key == rule.Key })
			f.Rules = append(f.Rules, merge.Effective{Rule: rule, From: merge.Origin{Policy: &p.Policy, Block: p.Blocks[i].Block}})
		}
	}
	b := new(binder)
	var out []*Effective
	for i := range max(len(r.Rules), 1) {
		if len(r.Rules) == 0 || section == "" || SelectsRule(p.Kind, r, section, i) {
			out = append(out, &Effective{Kind: p.Kind, Path: gateway.Path{Route: r, Rule: i}, Layers: f.layers, Result: f.Result, folded: f, binder: b})
		}
	}
	return out
}
