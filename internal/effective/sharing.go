package effective

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// sharing finds the policies of a kind that have no effect because of others beside them
// (sameTarget, order.equal, targets.allOrNone and targets.notShared of the profile).
type sharing struct {
	view    *snapshot.View
	kind    *policykind.Kind
	gateway *gateway.Gateway
	ports   map[sharedPort]int // listeners of the gateway
	routes  map[*policykind.Policy]string
	rivals  map[*policykind.Policy]*policykind.Policy
}

// sharedPort is a port of listeners of protocol HTTP: of all, or of those of one parent.
type sharedPort struct {
	port   int32
	parent api.Ref
}

// reason returns why a policy at a level of the current path has no effect, "" if it has.
func (s *sharing) reason(k *stackBuilder, p *policykind.Policy, l gateway.Level) string {
	if k.kind.Order != nil && k.kind.Order.Equal {
		return unequal(k, p)
	}
	why := s.sharedPath(p)
	if why == "" && (l == gateway.LevelListener || l == gateway.LevelListenerSet) && slices.Contains(k.kind.Targets.NotShared, api.SharedPort) {
		why = s.sharedPort(k, l)
	}
	return why
}

// sharedPort returns the reason for a policy on the listener, or listener set, of the path.
func (s *sharing) sharedPort(k *stackBuilder, l gateway.Level) string {
	at := &k.stack.path
	if at.Listener == nil || !at.Listener.PlainHTTP() {
		return ""
	}
	if s.gateway != at.Gateway {
		s.gateway, s.ports = at.Gateway, make(map[sharedPort]int)
		for _, m := range k.view.Listeners(at.Gateway) {
			if m.Listener.PlainHTTP() {
				s.ports[sharedPort{port: m.Listener.Port}]++
				s.ports[sharedPort{m.Listener.Port, m.Parent()}]++
			}
		}
	}
	port, own := at.Listener.Port, 1
	if l == gateway.LevelListenerSet {
		own = s.ports[sharedPort{port, at.Set.Ref()}]
	}
	if s.ports[sharedPort{port: port}] == own {
		return ""
	}
	return fmt.Sprintf("policies of kind %s have no effect on listeners of protocol HTTP that share port %d with other listeners of %s: target the whole Gateway",
		k.kind.Kind, port, at.Gateway.Ref())
}

// sharedPath returns the reason for a policy that targets routes.
func (s *sharing) sharedPath(p *policykind.Policy) string {
	if !slices.Contains(s.kind.Targets.NotShared, api.SharedPath) {
		return ""
	}
	why, known := s.routes[p]
	if known {
		return why
	}
	targets := s.view.Targets(p)
	for _, t := range targets {
		route, ok := s.view.Get(t.Ref).(*gateway.Route)
		if !ok {
			continue
		}
		for other := range sharingPath(s.view, route) {
			if slices.ContainsFunc(targets, func(t policykind.Target) bool { // NGINX does not compare kinds
				return gateway.IsRoute(t.Ref.PolicyKind()) && t.Ref.Namespace == other.Namespace && t.Ref.Name == other.Name
			}) {
				continue
			}
			name := other.Ref().String() + "; target both"
			if other.Namespace != p.Namespace {
				name = "a route of another namespace; use another path"
			}
			why = fmt.Sprintf("policies of kind %s have no effect on a route that shares a hostname, port and path with one that they do not target: %s shares one with %s",
				s.kind.Kind, route.Ref(), name)
		}
	}
	if s.routes == nil {
		s.routes = make(map[*policykind.Policy]string)
	}
	s.routes[p] = why
	return why
}

// unequal returns the reason for a policy on the route of the path that has another place
// in the order than another policy on a rule of the route.
func unequal(k *stackBuilder, p *policykind.Policy) string {
	for _, a := range k.on[gateway.LevelRoute] {
		if a.policy != p {
			continue
		}
		for _, b := range k.on[gateway.LevelRoute] {
			if b.policy.Rank != p.Rank && (a.target.Whole() || b.target.Whole() || a.target.Section == b.target.Section) {
				return fmt.Sprintf("policies of kind %s have no effect beside others on %s whose %[3]s differs: give them the same %[3]s", k.kind.Kind, a.target.Ref, k.kind.Order.Field)
			}
		}
	}
	return ""
}
