package effective

import (
	"bytes"
	"encoding/binary"
	"slices"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Attachments looks up which policies are attached to the paths of requests. It is not
// safe for concurrent use.
type Attachments struct {
	start func() *walk
	walk  *walk // nil until the first question: most writes ask none
	root  root
	route *gateway.Route
	of    map[servedAt]*Attached
	known map[string]*Attached

	key   []byte         // buffer
	kinds []attachedKind // buffer
}

// servedAt is a rule at a listener of a router.
type servedAt struct {
	listener *gateway.ListenerMatch
	route    *gateway.Route
	rule     int
}

// Attachments returns the Attachments of the policies of some kinds in a view.
func (e *Engine) Attachments(v *snapshot.View, kinds []*policykind.Kind) *Attachments {
	return &Attachments{start: func() *walk {
		w := newWalk(e, v, kinds, nil, nil)
		w.keepsRoutes = true
		return w
	}}
}

// Attached is which policies are attached to the paths of the requests to a rule, by kind.
// Equal ones of one Attachments are identical.
type Attached struct{ kinds []attachedKind }

// attachedKind is the policies of a kind.
type attachedKind struct {
	kind *policykind.Kind
	// on has the policies and their levels on each path, any is set if there are some. end is
	// its end in the key of all kinds.
	on  string
	any bool
	end int
	// overrides is set if one of them has overrides, and binds if one binds to rules of
	// routes by their matches.
	overrides, binds bool
}

// MayLose reports whether requests that move from one rule to another may leave an
// override, or reach what weakens it: one of the policies has overrides, and those of its
// kind differ, or bind to single rules.
func (a *Attached) MayLose(to *Attached) bool {
	for i, from := range a.kinds {
		if from.overrides && (from.binds || from.on != to.kinds[i].on) {
			return true
		}
	}
	return false
}

// MayLoseRules returns the kinds of which requests that move from one rule to another may
// lose rules: those of which some policy is on them before, and not the same ones after.
func (a *Attached) MayLoseRules(to *Attached) []*policykind.Kind {
	var out []*policykind.Kind
	for i, from := range a.kinds {
		if from.any && from.on != to.kinds[i].on {
			out = append(out, from.kind)
		}
	}
	return out
}

// enter makes the gateway or Service of a listener and a route the current ones.
func (a *Attachments) enter(l *gateway.ListenerMatch, r *gateway.Route) {
	if at := (root{gateway: l.Gateway, service: l.Service}); a.root != at {
		a.walk.enterRoot(at, nil)
		a.root, a.route = at, nil
	}
	if a.route != r {
		a.walk.enterRoute(r)
		a.route = r
	}
}

// Of returns the policies on the paths of a rule of a route at a listener.
func (a *Attachments) Of(l *gateway.ListenerMatch, r *gateway.Route, rule int) *Attached {
	if a.walk == nil {
		a.walk, a.of, a.known = a.start(), make(map[servedAt]*Attached), make(map[string]*Attached)
		a.kinds = make([]attachedKind, len(a.walk.kinds))
	}
	at := servedAt{l, r, rule}
	known, ok := a.of[at]
	if !ok {
		known = a.find(l, r, rule)
		a.of[at] = known
	}
	return known
}

// find is Of without its memo.
func (a *Attachments) find(l *gateway.ListenerMatch, r *gateway.Route, rule int) *Attached {
	a.enter(l, r)
	p := gateway.Path{Gateway: l.Gateway, Set: l.Set, Listener: l.Listener, Route: r, Rule: rule}
	if l.Service != nil {
		p = gateway.Path{Service: l.Service, Port: l.Listener.Port, Client: l.Client, Route: r, Rule: rule}
	}
	a.key = a.key[:0]
	for i := range a.kinds {
		k := &a.walk.kinds[i]
		a.kinds[i] = attachedKind{kind: k.kind}
		a.key = k.appendAttached(a.key, &a.kinds[i], p)
		a.kinds[i].end = len(a.key)
	}
	for i := range a.kinds {
		a.key = binary.AppendUvarint(a.key, uint64(a.kinds[i].end)) //nolint:gosec // a length
	}
	if known, ok := a.known[string(a.key)]; ok {
		return known
	}
	key, out, start := string(a.key), &Attached{slices.Clone(a.kinds)}, 0
	for i := range out.kinds {
		k := &out.kinds[i]
		k.on, start = key[start:k.end], k.end
	}
	a.known[key] = out
	return out
}

// appendAttached appends the policies of the kind on the paths of a rule.
func (k *kindWalk) appendAttached(b []byte, to *attachedKind, p gateway.Path) []byte {
	end, has := k.shape.gatewayEnd, k.shape.gateway
	if p.Service != nil {
		end, has = k.shape.meshEnd, k.shape.mesh
	}
	if !has || end < gateway.LevelRoute || !k.shape.includesRoute(p.Route.Kind) {
		return b
	}
	var backends []gateway.Backend
	if end >= gateway.LevelBackend && p.Rule < len(p.Route.Rules) {
		backends = p.Route.Rules[p.Rule].Backends
	}
	if end < gateway.LevelRule || len(p.Route.Rules) == 0 {
		p.Rule = -1
	}
	if members, controlled := membersOf(k.kind, p); controlled && len(members) == 0 {
		return b
	}
	for _, p.Client = range k.clientsAt(&p) {
		b = append(append(b, p.Client...), ':')
		p.Backend = nil
		if len(backends) == 0 {
			b = k.appendStack(b, to, p)
		}
		var differing [][]byte // of the backends
		for i := range backends {
			p.Backend = &backends[i]
			if !reaches(k.view, p.Route, p.Backend.Object) {
				continue
			}
			start := len(b)
			b = k.appendStack(b, to, p)
			if one := b[start:]; slices.ContainsFunc(differing, func(o []byte) bool { return bytes.Equal(o, one) }) {
				b = b[:start]
			} else if len(backends) > 1 {
				differing = append(differing, one)
			}
		}
	}
	return b
}

// appendStack appends the policies of the kind on a path.
func (k *kindWalk) appendStack(b []byte, to *attachedKind, p gateway.Path) []byte {
	p = k.shape.markNamespaces(p)
	k.buildStack(&p)
	k.stack.decideFromBelow(k.kind, false)
	b = binary.AppendUvarint(b, uint64(len(k.stack.layers)))
	for i := range k.stack.layers {
		l := &k.stack.layers[i]
		// the policy ends with the namespace of the route
		own := l.policy.Namespace == p.Route.Namespace && (p.Gateway == nil || l.policy.Namespace != p.Gateway.Namespace)
		b = appendLayer(b, l)
		b = append(b, bit(own))
		if l.As != nil {
			b = append(b, byte(l.As.Block))
		}
		if gateway.Level(l.Level) >= gateway.LevelBackend {
			o := p.Backend.Object
			for _, part := range []string{o.Group, o.Kind, o.Namespace, o.Name} {
				b = append(append(b, part...), 0)
			}
			b = append(binary.AppendVarint(b, int64(p.Backend.Port)), bit(p.Route.Rules[p.Rule].Serves(*p.Backend)))
		}
		to.any, to.overrides, to.binds = true, to.overrides || HasOverrides(&l.Layer), to.binds || l.policy.Binds
	}
	return b
}
