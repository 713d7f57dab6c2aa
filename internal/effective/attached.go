package effective

import (
	"fmt"
	"strings"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Attachments looks up which policies are attached to the paths of requests. It is not
// safe for concurrent use.
type Attachments struct {
	walk  *walk
	root  root
	route *gateway.Route
	of    map[servedAt]*Attached
	known map[string]*Attached
}

// servedAt is a rule at a listener of a router.
type servedAt struct {
	listener *gateway.ListenerMatch
	route    *gateway.Route
	rule     int
}

// Attachments returns the Attachments of the policies of some kinds in a view.
func (e *Engine) Attachments(v *snapshot.View, kinds []*policykind.Kind) *Attachments {
	return &Attachments{walk: newWalk(e, v, kinds, nil, nil), of: make(map[servedAt]*Attached), known: make(map[string]*Attached)}
}

// Attached is which policies are attached to the paths of the requests to a rule, by kind.
// Equal ones of one Attachments are identical.
type Attached struct{ kinds []attachedKind }

// attachedKind is the policies of a kind.
type attachedKind struct {
	kind *policykind.Kind
	// on has the policies and their levels on each path, any is set if there are some.
	on  string
	any bool
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
	out := &Attached{kinds: make([]attachedKind, len(a.walk.kinds))}
	var key strings.Builder
	for i := range out.kinds {
		out.kinds[i] = a.walk.attachedOn(i, p)
		fmt.Fprintf(&key, "%t %t %s\n", out.kinds[i].overrides, out.kinds[i].binds, out.kinds[i].on)
	}
	if known, ok := a.known[key.String()]; ok {
		return known
	}
	a.known[key.String()] = out
	return out
}

// attachedOn returns the policies of a kind on the paths of a rule.
func (w *walk) attachedOn(kind int, p gateway.Path) attachedKind {
	k := &w.kinds[kind]
	end, has := k.shape.gatewayEnd, k.shape.gateway
	if p.Service != nil {
		end, has = k.shape.meshEnd, k.shape.mesh
	}
	if !has || end < gateway.LevelRoute || !k.shape.includesRoute(p.Route.Kind) {
		return attachedKind{kind: k.kind}
	}
	clients := []string{p.Client}
	if p.Service != nil && p.Client == "" {
		clients = append(clients, w.clients(kind, p.Route)...)
	}
	var backends []gateway.Backend
	if end >= gateway.LevelBackend && p.Rule < len(p.Route.Rules) {
		backends = p.Route.Rules[p.Rule].Backends
	}
	if end < gateway.LevelRule || len(p.Route.Rules) == 0 {
		p.Rule = -1
	}
	if members, controlled := membersOf(k.kind, p); controlled && len(members) == 0 {
		return attachedKind{kind: k.kind}
	}
	out := attachedKind{kind: k.kind}
	var on strings.Builder
	for _, p.Client = range clients {
		fmt.Fprintf(&on, "%s:", p.Client)
		p.Backend = nil
		if len(backends) == 0 {
			w.addAttached(&out, &on, kind, p)
		}
		seen := make(map[string]bool) // what backends have in common
		for i := range backends {
			p.Backend = &backends[i]
			if !reaches(w.view, p.Route, p.Backend.Object) {
				continue
			}
			var one strings.Builder
			w.addAttached(&out, &one, kind, p)
			if !seen[one.String()] {
				seen[one.String()] = true
				on.WriteString(one.String())
			}
		}
	}
	out.on = on.String()
	return out
}

// addAttached adds the policies of a kind on a path.
func (w *walk) addAttached(to *attachedKind, on *strings.Builder, kind int, p gateway.Path) {
	k := &w.kinds[kind]
	p = k.shape.markNamespaces(p)
	w.buildStack(kind, &p)
	k.stack.setReadings(k.kind, false)
	for i := range k.stack.layers {
		l, policy := &k.stack.layers[i], k.stack.policies[i]
		fmt.Fprintf(on, "%d at %d of %d", k.stack.versions[i], l.Level, l.Tier)
		if l.As != nil {
			fmt.Fprintf(on, " as %v", *l.As)
		}
		if policy.Namespace == p.Route.Namespace && (p.Gateway == nil || policy.Namespace != p.Gateway.Namespace) {
			on.WriteString(" own") // it ends with the namespace of the route
		}
		if gateway.Level(l.Level) >= gateway.LevelBackend {
			fmt.Fprintf(on, " on %v of %t", *p.Backend, p.Route.Rules[p.Rule].Serves(*p.Backend))
		}
		on.WriteByte(',')
		to.any = true
		to.overrides = to.overrides || HasOverrides(l)
		to.binds = to.binds || policy.Binds
	}
	on.WriteByte(';')
}
