package effective

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// stack is the policies of one kind on one path, and below them the route's own fields.
type stack struct {
	path    gateway.Path
	layers  []layer
	client  string               // namespace that the traffic comes from
	ignored []*policykind.Policy // that have no effect on the path
	shared  string               // why an ignored policy has none, if it shares its target
	held    bool                 // such a policy on the listener keeps those above off it
	several bool                 // ignored policies exclude each other
}

// layer is a layer of a stack with its policy as it was read.
type layer struct {
	merge.Layer

	policy *policykind.Policy
}

// reset clears the stack for a path.
func (s *stack) reset(p *gateway.Path) *stack {
	s.layers, s.ignored, s.shared, s.held, s.several = s.layers[:0], s.ignored[:0], "", false, false
	s.path, s.client = *p, clientOf(p)
	return s
}

func (s *stack) add(k *stackBuilder, p *policykind.Policy, l gateway.Level) { s.addAt(k, p, l, 0) }

// addAt is add for one of several places of a level.
func (s *stack) addAt(k *stackBuilder, p *policykind.Policy, l gateway.Level, place int) {
	if k.unread.levels.has(l) || missingTrait(k.kind, &s.path) != "" {
		s.ignored = append(s.ignored, p)
		return
	}
	if l == gateway.LevelListener && slices.Contains(k.kind.Targets.Listeners, api.ListenerOwnTLS) && !s.path.Listener.TerminatesTLS() {
		s.ignored, s.shared = append(s.ignored, p), fmt.Sprintf("policies of kind %s on a listener have no effect if it does not terminate TLS", k.kind.Kind)
		return
	}
	if why := k.sharing.reason(k, p, l); why != "" {
		s.ignored, s.shared, s.held = append(s.ignored, p), why, s.held || l == gateway.LevelListener
		s.several = s.several || k.kind.Order != nil && k.kind.Order.Equal
		return
	}
	on := layer{merge.Layer{
		Policy: &p.Policy, Level: int(l), Depth: k.shape.depths[l], Place: place, Tier: k.shape.tier(l, &k.stack.path), SameTarget: k.sameTarget,
	}, p}
	if len(p.Parts) > 0 {
		on.Part = partOf(p, &s.path)
	}
	if k.shape.bareOverrides.has(l) {
		on.As = p.BareOverrides
	}
	s.layers = append(s.layers, on)
}

// partOf returns the part of a policy that is applied on a path (merge.Layer.Part).
func partOf(p *policykind.Policy, path *gateway.Path) int {
	switch {
	case p.Kind.Directions != nil && (path.Gateway == nil || path.Service != nil || isWaypoint(p.Kind, path.Gateway)):
		return policykind.WaypointPart
	case p.Kind.RouteContents != nil && path.Route != nil:
		return p.PartFor(path.Route.Ref())
	default:
		return 0
	}
}

// matches reports whether the stack is the one of a fold.
func (s *stack) matches(f *folded) bool {
	return slices.EqualFunc(s.layers, f.layers, func(a layer, b merge.Layer) bool {
		return a.Policy == b.Policy && a.Level == b.Level && a.Depth == b.Depth && a.Place == b.Place && a.Part == b.Part && a.Tier == b.Tier && (a.As == b.As || appliedAs(a.As) == appliedAs(b.As))
	})
}

// buildStack collects the layers of a path.
func (k *stackBuilder) buildStack(p *gateway.Path) {
	s := k.stack.reset(p)
	k.addWhole(gateway.LevelMesh)
	if p.Gateway != nil {
		k.addWhole(gateway.LevelGatewayClass)
		k.addWhole(gateway.LevelGatewayNamespace)
		own := gateway.ListenerMatch{Gateway: p.Gateway, Set: p.Set, Listener: p.Listener}
		first := k.first(&own)
		if first != &own {
			k.ignoreOwn(&own, first)
		}
		through := func(t *policykind.Target) bool { return k.through(first, t) }
		k.addSections(k.on[gateway.LevelGateway], gateway.LevelGateway, gateway.LevelListener, through)
		if k.kind.RouteContents != nil { // what the closest one has for the route is all there is
			s.sort()
			for i := range len(s.layers) - 1 {
				s.layers[i].Part = 0
			}
		}
		if first.Set != nil {
			k.addSections(k.attached(first.Set.Ref()), gateway.LevelListenerSet, gateway.LevelListener, through)
		}
	}
	if p.Service != nil {
		if p.ServiceNamespace {
			k.addWhole(gateway.LevelServiceNamespace)
		}
		k.addSections(k.on[gateway.LevelService], gateway.LevelService, gateway.LevelServicePort, func(t *policykind.Target) bool {
			return onPort(k.view, k.unread.numbers, t, p.Service.Ref(), p.Port)
		})
	}
	if p.Route != nil {
		k.addWhole(gateway.LevelRouteNamespace)
		k.addSections(k.on[gateway.LevelRoute], gateway.LevelRoute, gateway.LevelRule, func(t *policykind.Target) bool {
			return p.Rule >= 0 && SelectsRule(k.kind, p.Route, t.Section, p.Rule)
		})
		k.addFilters(p.Rule)
	}
	if p.Backend != nil && !sameService(*p) {
		k.addSections(k.onBackend(p), gateway.LevelBackend, gateway.LevelBackendPort, func(t *policykind.Target) bool {
			return k.unread.whole || onPort(k.view, k.unread.numbers, t, p.Backend.Object, p.Backend.Port)
		})
	}
	k.exclude()
	k.byPlace()
	if k.alternative != nil {
		k.yield(&k.alternative.kinds[0].stackBuilder, p)
	}
}

// yield ignores the policies with a rule that a closer one of an alternative kind sets.
func (k *stackBuilder) yield(o *stackBuilder, p *gateway.Path) {
	o.buildStack(p)
	s := &k.stack
	s.layers = slices.DeleteFunc(s.layers, func(l layer) bool {
		i := slices.IndexFunc(o.stack.layers, func(c layer) bool {
			return merge.Compare(l.Layer, c.Layer) < 0 && !l.Beside(&c.Layer) && rulesConflict(l.policy, c.policy)
		})
		if i >= 0 {
			s.ignored, s.shared = append(s.ignored, l.policy), fmt.Sprintf("%s is closer and has the same rule", o.stack.layers[i].policy.Ref())
		}
		return i >= 0
	})
}

// byPlace sets which rules of each policy have an effect at its place, in some kinds, and
// ignores the policies without any.
func (k *stackBuilder) byPlace() {
	s := &k.stack
	if !k.kind.HasPlaces() {
		return
	}
	all, port := s.layers, ""
	if l := s.path.Listener; l != nil {
		port = strconv.Itoa(int(l.Port))
	}
	if !slices.ContainsFunc(all, func(l layer) bool { return l.policy.HasPort(port) }) {
		port = ""
	}
	at := policykind.Place{Merged: len(all) > 1, Port: port, Beside: k.hasBeside()}
	if r := s.path.Route; r != nil {
		at.Route, at.Unserved = r.Kind, s.path.Rule >= 0 && len(r.Rules[s.path.Rule].Backends) == 0
	} else if l := s.path.Listener; l != nil && len(l.Kinds) > 0 {
		at.Route = l.Kinds[0]
	}
	refused := k.refused(all, at.Route)
	s.layers = all[:0]
	for i, l := range all {
		at.Listener = l.Level == int(gateway.LevelListener)
		l.Part = l.policy.PartAt(at)
		switch {
		case slices.Contains(refused, i):
			s.ignored, s.shared = append(s.ignored, l.policy), fmt.Sprintf("%s has no effect on a %s beside fields that may not be set there", k.kind.Kind, at.Route)
		case l.policy.Sets(l.Part) || l.policy.Empty() && !k.kind.RefusesOn(at.Route):
			s.layers = append(s.layers, l)
		case !l.policy.OnlyForPorts():
			s.ignored, s.shared = append(s.ignored, l.policy), fmt.Sprintf("no field that %s sets has an effect there", l.policy.Ref())
		}
	}
}

// refused returns which of the policies on the path have no effect because of a field that
// may not be set on a kind of routes: policies on the route that set one, or are merged with
// the closest policy above it if that does.
func (k *stackBuilder) refused(all []layer, route string) []int {
	if !k.kind.RefusesOn(route) {
		return nil
	}
	var out []int
	above := -1 // the route
	for i, l := range all {
		if l.Level < int(gateway.LevelRoute) && (above < 0 || l.Depth > all[above].Depth) {
			above = i
		}
	}
	for i, l := range all {
		merged := above >= 0 && l.policy.Merges() && k.kind.Refuses(all[above].policy, route)
		if l.Level >= int(gateway.LevelRoute) && (merged || k.kind.Refuses(l.policy, route)) {
			out = append(out, i)
		}
	}
	return out
}

// hasBeside reports whether the backend of the path has a policy of the other kind beside which
// rules of this one have no effect.
func (k *stackBuilder) hasBeside() bool {
	b, kind := k.stack.path.Backend, k.kind.Beside()
	if b == nil || kind == (api.PolicyKind{}) {
		return false
	}
	for p, t := range k.view.On(b.Object) {
		if p.Kind.Ref() == kind && p.Invalid == nil && t.Refused == "" && (t.Whole() || onPort(k.view, k.unread.numbers, &t, b.Object, b.Port)) {
			return true
		}
	}
	return false
}

// exclude ignores all policies of the path if one keeps the others off it, in some kinds
// those on a level with several, and at some gateways those on a backend with an older one,
// and those on some backends of a rule.
func (k *stackBuilder) exclude() {
	s, alone := &k.stack, k.kind.SameTarget == api.Alone || k.unread.alone
	if !s.held && !alone && !k.unread.equal && !k.unread.all {
		return
	}
	all := slices.Clone(s.layers)
	s.layers = s.layers[:0]
	for _, l := range all {
		several := alone && slices.ContainsFunc(all, func(o layer) bool { return (o.Tier == l.Tier || k.unread.alone) && o.Policy != l.Policy })
		if several {
			s.several = true
			s.shared = fmt.Sprintf("policies of kind %s have no effect beside another one on %s", k.kind.Kind, s.path.Element(gateway.Level(l.Tier)))
			if k.unread.alone {
				s.shared += fmt.Sprintf(": %s takes none of several", s.path.Gateway.Ref())
			}
		}
		older := k.unread.equal && slices.ContainsFunc(all, func(o layer) bool { return olderOnBackend(o.Layer, l.Layer) })
		if older {
			s.shared = fmt.Sprintf("policies of kind %s have no effect beside an older one on %s or a port of it: %s does not prefer ports",
				k.kind.Kind, s.path.Backend.Object, s.path.Gateway.Ref())
		}
		partial := k.unread.all && (l.Level >= int(gateway.LevelBackend) || k.kind.AnnotationDomain() != "") && !k.onAllBackends(l.policy)
		if partial {
			s.shared = fmt.Sprintf("policies of kind %s have no effect on a rule if %s: %s does not read them", k.kind.Kind, k.partialReason(), s.path.Gateway.Ref())
		}
		if s.held || several || older || partial {
			s.ignored = append(s.ignored, l.policy)
		} else {
			s.layers = append(s.layers, l)
		}
	}
}

// partialReason returns when policies have no effect on a rule, at some gateways.
func (k *stackBuilder) partialReason() string {
	if domain := k.kind.AnnotationDomain(); domain != "" {
		return "not all its Services have the same annotations " + domain + "*"
	}
	return "not all its backends have them"
}

// onAllBackends reports whether each backend of the rule of the path has a policy, or one
// with the same rules; in kinds that are attached by an annotation, whether all its Services
// have the same ones.
func (k *stackBuilder) onAllBackends(p *policykind.Policy) bool {
	path := &k.stack.path
	if path.Route == nil || path.Rule < 0 {
		return true
	}
	if domain := k.kind.AnnotationDomain(); domain != "" {
		return k.annotatedAlike(domain)
	}
	for _, b := range path.Route.Rules[path.Rule].Backends {
		if !slices.ContainsFunc(k.attached(b.Object), func(a attachment) bool {
			return a.policy.SameRules(p) && (a.target.Whole() || onPort(k.view, k.unread.numbers, &a.target, b.Object, b.Port))
		}) {
			return false
		}
	}
	return true
}

// annotatedAlike reports whether the Services of the rule of the path that exist have the
// same annotations of a domain.
func (k *stackBuilder) annotatedAlike(domain string) bool {
	path, first := &k.stack.path, map[string]string(nil)
	for _, b := range path.Route.Rules[path.Rule].Backends {
		service, ok := k.view.Get(b.Object).(*gateway.Service)
		if !ok || !reaches(k.view, path.Route, b.Object) {
			continue
		}
		own := maps.Clone(service.Annotations)
		maps.DeleteFunc(own, func(name, _ string) bool { return !strings.HasPrefix(name, domain) })
		if first == nil {
			first = own
		} else if !maps.Equal(first, own) {
			return false
		}
	}
	return true
}

// olderOnBackend reports whether a policy is on the backend of a path, or on its port, as
// another one is, and older.
func olderOnBackend(a, b merge.Layer) bool {
	a.Level, b.Level = min(a.Level, int(gateway.LevelBackend)), min(b.Level, int(gateway.LevelBackend))
	return a.Level == int(gateway.LevelBackend) && b.Level == a.Level && merge.Compare(a, b) < 0
}

// onBackend returns the policies on the backend of a path, with those on the other backends
// of the rule in kinds that join them.
func (k *stackBuilder) onBackend(p *gateway.Path) []attachment {
	out := k.attached(p.Backend.Object)
	if !k.kind.JoinsBackends() {
		return out
	}
	out = slices.Clone(out)
	for _, b := range p.Route.Rules[p.Rule].Backends {
		for _, a := range k.attached(b.Object) {
			known := slices.ContainsFunc(out, func(o attachment) bool { return o.policy == a.policy })
			if !known && a.target.Whole() && reaches(k.view, p.Route, b.Object) {
				out = append(out, a)
			}
		}
	}
	return out
}

// first returns the listener whose policies a listener has: in some kinds, the first one on
// its port.
func (k *stackBuilder) first(l *gateway.ListenerMatch) *gateway.ListenerMatch {
	if l.Listener == nil || !slices.Contains(k.kind.Targets.Listeners, api.ListenerFirst) {
		return l
	}
	all := k.view.Listeners(l.Gateway)
	i := slices.IndexFunc(all, func(o gateway.ListenerMatch) bool { return o.Listener.Port == l.Listener.Port })
	if i < 0 || all[i].Parent() == l.Parent() && all[i].Listener.Name == l.Listener.Name {
		return l
	}
	return &all[i]
}

// through reports whether a target of a gateway or listener set selects a listener.
func (k *stackBuilder) through(l *gateway.ListenerMatch, t *policykind.Target) bool {
	if t.Ref.Kind == gateway.KindGateway {
		return ofGateway(k.kind, t, l)
	}
	return onListener(t, l.Listener)
}

// ignoreOwn ignores the policies of a listener of which another one is the first.
func (k *stackBuilder) ignoreOwn(own, first *gateway.ListenerMatch) {
	s, all := &k.stack, k.on[gateway.LevelGateway]
	if own.Set != nil && own.Parent() != first.Parent() {
		all = slices.Concat(all, k.attached(own.Set.Ref()))
	}
	for _, a := range all {
		inSet := a.target.Whole() && a.target.Ref.Kind != gateway.KindGateway
		if inSet || !a.target.Whole() && k.through(own, &a.target) && !k.through(first, &a.target) {
			s.ignored = append(s.ignored, a.policy)
			s.shared = fmt.Sprintf("policies of kind %s have no effect on %s: those on %s, the first listener on port %d, have", k.kind.Kind,
				gateway.Path{Gateway: own.Gateway, Set: own.Set, Listener: own.Listener}.Element(gateway.LevelListener),
				gateway.Path{Gateway: first.Gateway, Set: first.Set, Listener: first.Listener}.Element(gateway.LevelListener), own.Listener.Port)
		}
	}
}

// addWhole adds the policies on the whole object of a level.
func (k *stackBuilder) addWhole(l gateway.Level) {
	k.addSections(k.on[l], l, l, func(*policykind.Target) bool { return false })
}

// addSections adds the policies on an object, and those on sections of it that the
// path goes through. A policy that affects only clients of its own namespace is only
// on their paths.
func (k *stackBuilder) addSections(all []attachment, object, section gateway.Level, through func(*policykind.Target) bool) {
	s := &k.stack
	all = k.sharing.forClient(all, s.client)
	for i := range all {
		a := &all[i]
		switch {
		case a.target.Consumer && a.policy.Namespace != s.client, a.target.AttachedBy == policykind.ExtensionRef:
		case a.policy.SelectsPods && object == gateway.LevelGateway && isWaypoint(k.kind, s.path.Gateway):
			s.ignored, s.shared = append(s.ignored, a.policy), fmt.Sprintf("policies of kind %s that select pods have no effect at waypoint %s", k.kind.Kind, s.path.Gateway.Ref())
		case a.target.Whole():
			if !k.shape.levels.has(object) {
				continue
			}
			at := object
			if object == gateway.LevelGatewayClass && a.target.Place > 0 {
				at = gateway.LevelGateway
			}
			s.addAt(k, a.policy, at, a.target.Place)
		case k.shape.levels.has(section) && through(&a.target):
			n := len(s.layers)
			s.add(k, a.policy, section)
			if object == gateway.LevelGateway && a.target.Section == "" && n < len(s.layers) {
				s.layers[n].Depth = int(object) // a port is above the listener sets and listeners
			}
		}
	}
}

// addFilters adds the policies to which the filters of a rule refer.
func (k *stackBuilder) addFilters(rule int) {
	for _, a := range k.on[gateway.LevelRoute] {
		if t := &a.target; t.AttachedBy == policykind.ExtensionRef && t.Rule == rule {
			k.stack.addAt(k, a.policy, gateway.LevelFilter, t.Place)
		}
	}
}

// clientOf returns the namespace that the traffic of a path comes from: in a mesh that
// of the clients, else that of the gateway.
func clientOf(p *gateway.Path) string {
	if p.Service == nil && p.Gateway != nil {
		return p.Gateway.Namespace
	}
	return p.Client
}

// decideFromBelow has each policy decide how those above it are applied, in the order in
// which they are applied, in kinds whose lower policy decides it. A policy that is merged
// replaces those of levels that are joined with its own. With onFields, fields of the route
// are below the lowest policy: it gives way to each of them alone, whatever its strategy is.
func (s *stack) decideFromBelow(k *policykind.Kind, onFields bool) {
	if !k.LowerDecidesStrategy() || len(s.layers) < 2 && len(k.Controls()) == 0 {
		return
	}
	s.sort()
	if s.path.Route != nil && slices.Contains(k.Strategy.MergeOn, s.path.Route.Kind) {
		for i := range s.layers {
			s.layers[i].As = &merge.Reading{Block: merge.Bare, Strategy: merge.Merge}
		}
		return
	}
	var as *merge.Reading
	var merged *layer
	for i := len(s.layers) - 1; i >= 0; i-- {
		l := &s.layers[i]
		if merged != nil && l.Tier == merged.Tier && l.Level != merged.Level {
			l.As = &merge.Reading{Block: merge.Bare, By: merged.Policy}
			continue
		}
		l.As = as
		as = l.policy.Above(as)
		if l.policy.Merges() {
			merged = l
		}
	}
	if onFields {
		s.layers[len(s.layers)-1].As = &merge.Reading{Block: merge.Bare, Strategy: merge.Merge}
	}
}

// sort sorts the layers into the order in which the fold applies them, the last one
// first. On a target where the oldest wins, the newest is the last.
func (s *stack) sort() {
	slices.SortStableFunc(s.layers, func(a, b layer) int {
		if a.Beside(&b.Layer) && a.SameTarget == merge.SameTargetOldestWins {
			a, b = b, a
		}
		return merge.Compare(a.Layer, b.Layer)
	})
}
