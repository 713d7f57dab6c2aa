package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// attachment is a policy on a target of it.
type attachment struct {
	policy *policykind.Policy
	target policykind.Target
}

// attached returns the policies that are accepted on an object, by kind; nil
// where there are none at all.
func (w *walk) attached(object api.Ref) [][]attachment {
	var out [][]attachment
	w.targeting.On(object, func(p *policykind.Policy, t policykind.Target) bool {
		if kind := w.kindOf(p, t); kind >= 0 {
			if out == nil {
				out = make([][]attachment, len(w.by))
			}
			out[kind] = append(out[kind], attachment{p, t})
		}
		return true
	})
	if out != nil && missing(w.view, object) {
		return nil
	}
	for i := range out {
		out[i] = settled(w.by[i].kind, out[i])
	}
	return out
}

// kindOf returns which of the kinds a policy on a target is of, or -1 if it is of
// none, or has no effect there.
func (w *walk) kindOf(p *policykind.Policy, t policykind.Target) int {
	if p.Invalid != nil || t.Refused != "" {
		return -1
	}
	for i := range w.by {
		if w.by[i].kind == p.Kind {
			return i
		}
	}
	return -1
}

// settled takes out the policies that another one of their kind keeps off the
// object.
func settled(k *policykind.Kind, all []attachment) []attachment {
	if len(all) > 1 && conflicts(k) {
		return accepted(all)
	}
	return all
}

// missing reports whether an object that paths may name is known not to exist:
// a class or a backend. A policy on it has no target.
func missing(v *snapshot.View, object api.Ref) bool {
	switch object.PolicyKind() {
	case api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass}, api.PolicyKind{Kind: gateway.KindService}:
		return v.Get(object) == nil
	default:
		return false
	}
}

// conflicts reports whether one policy of the kind can keep another off a
// target.
func conflicts(k *policykind.Kind) bool {
	return k.SameTarget == api.None || k.SameTarget == api.FieldConflict
}

// accepted takes out the policies whose target an older one holds.
func accepted(all []attachment) []attachment {
	var out []attachment
	for _, a := range oldestFirst(all) {
		if rivalOf(a, out) == nil {
			out = append(out, a)
		}
	}
	return out
}

func oldestFirst(all []attachment) []attachment {
	return slices.SortedStableFunc(slices.Values(all), func(a, b attachment) int {
		return merge.Compare(merge.Layer{Policy: &a.policy.Policy}, merge.Layer{Policy: &b.policy.Policy})
	})
}

// rivalOf returns which of the policies that hold a target keeps another one
// off it, or nil (SEMANTICS section 5, none and fieldConflict).
func rivalOf(a attachment, holders []attachment) *policykind.Policy {
	for _, h := range holders {
		if h.policy == a.policy || h.target.Section != a.target.Section || h.target.Port != a.target.Port {
			continue
		}
		if a.policy.Kind.SameTarget == api.None || overlap(h.policy, a.policy) {
			return h.policy
		}
	}
	return nil
}

// overlap reports whether two policies have rules at the same place.
func overlap(a, b *policykind.Policy) bool {
	for _, x := range a.Blocks {
		for _, y := range b.Blocks {
			if overlapRules(x.Rules, y.Rules) {
				return true
			}
		}
	}
	return false
}

// overlapRules walks two sorted lists of rules side by side.
func overlapRules(a, b []merge.Rule) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x, y := a[i], b[j]
		switch {
		case x.Key == y.Key, x.Key.Holds(y.Key) && !x.EmptyMap, y.Key.Holds(x.Key) && !y.EmptyMap:
			return true
		case x.Key.Compare(y.Key) < 0:
			i++
		default:
			j++
		}
	}
	return false
}

// Holder returns the policy that holds a target of p, which is no selector: p
// itself, unless its kind conflicts and an older one is there.
func Holder(v *snapshot.View, p *policykind.Policy, t policykind.Target) *policykind.Policy {
	if !conflicts(p.Kind) {
		return p
	}
	var all []attachment
	for other, target := range v.On(t.Ref) {
		if other.Kind == p.Kind && other.Invalid == nil && target.Refused == "" {
			all = append(all, attachment{other, target})
		}
	}
	if rival := rivalOf(attachment{p, t}, accepted(all)); rival != nil {
		return rival
	}
	return p
}

// above holds what falls on the paths of one root or one route, of a kind.
type above struct {
	mesh, class, gatewayNamespace, gateway []attachment
	serviceNamespace, service              []attachment
	routeNamespace, route                  []attachment
}

// stack is the policies of one kind on one path.
type stack struct {
	layers   []merge.Layer
	policies []*policykind.Policy // likewise; those of the object left out
	versions []uint64             // likewise
	client   string               // the namespace that the traffic comes from
}

// reset empties the stack for a path whose traffic comes from a namespace.
func (s *stack) reset(client string) *stack {
	s.layers, s.policies, s.versions, s.client = s.layers[:0], s.policies[:0], s.versions[:0], client
	return s
}

func (s *stack) add(k *kindWalk, p *policykind.Policy, l gateway.Level) {
	s.layers = append(s.layers, merge.Layer{Policy: &p.Policy, Level: int(l), Meet: k.meet})
	s.policies = append(s.policies, p)
	s.versions = append(s.versions, p.Version)
}

// is reports whether the stack is one that was folded.
func (s *stack) is(f *folded) bool {
	return slices.EqualFunc(s.layers, f.layers, func(a, b merge.Layer) bool {
		return a.Policy == b.Policy && a.Level == b.Level && (a.As == b.As || reading(a.As) == reading(b.As))
	})
}

// pile puts the layers of a path together. set and backend are what is attached
// to those of the path.
func (k *kindWalk) pile(p *gateway.Path, set, backend []attachment) {
	on, s := &k.on, k.stack.reset(clientOf(p))
	k.whole(s, on.mesh, gateway.LevelMesh)
	if p.Gateway != nil {
		k.whole(s, on.class, gateway.LevelGatewayClass)
		k.whole(s, on.gatewayNamespace, gateway.LevelGatewayNamespace)
		k.section(s, on.gateway, gateway.LevelGateway, gateway.LevelListener, func(t *policykind.Target) bool {
			return p.Set == nil && onListener(t, p.Listener)
		})
		k.section(s, set, gateway.LevelListenerSet, gateway.LevelListener, func(t *policykind.Target) bool {
			return onListener(t, p.Listener)
		})
	}
	if p.Service != nil {
		k.whole(s, on.serviceNamespace, gateway.LevelServiceNamespace)
		k.section(s, on.service, gateway.LevelService, gateway.LevelServicePort, func(t *policykind.Target) bool {
			return k.onPort(t, p.Service.Ref(), p.Port)
		})
	}
	if p.Route != nil {
		k.whole(s, on.routeNamespace, gateway.LevelRouteNamespace)
		k.section(s, on.route, gateway.LevelRoute, gateway.LevelRule, func(t *policykind.Target) bool {
			return p.Rule >= 0 && p.Route.RuleAt(t.Section, p.Rule)
		})
	}
	if p.Backend != nil {
		k.section(s, backend, gateway.LevelBackend, gateway.LevelBackendPort, func(t *policykind.Target) bool {
			return k.onPort(t, p.Backend.Object, p.Backend.Port)
		})
	}
}

// whole adds the policies on a whole object.
func (k *kindWalk) whole(s *stack, all []attachment, l gateway.Level) {
	k.section(s, all, l, l, func(*policykind.Target) bool { return false })
}

// section adds the policies on an object, and those on a section of it that
// the path goes through. A policy that affects only its own namespace's
// clients is on no path but theirs.
func (k *kindWalk) section(s *stack, all []attachment, object, section gateway.Level, through func(*policykind.Target) bool) {
	for i := range all {
		a := &all[i]
		switch {
		case a.target.Consumer && a.policy.Namespace != s.client:
		case a.target.Whole():
			if k.shape.has[object] {
				s.add(k, a.policy, object)
			}
		case k.shape.has[section] && through(&a.target):
			s.add(k, a.policy, section)
		}
	}
}

// clientOf returns the namespace that the traffic of a path comes from: that of
// the clients in a mesh, else the gateway's.
func clientOf(p *gateway.Path) string {
	if p.Gateway != nil {
		return p.Gateway.Namespace
	}
	return p.Client
}

func onListener(t *policykind.Target, l *gateway.Listener) bool {
	return l != nil && (t.Section == "" || t.Section == l.Name) && (t.Port == 0 || t.Port == l.Port)
}

// onPort reports whether a target means the port of a backend or service.
func (k *kindWalk) onPort(t *policykind.Target, object api.Ref, port int32) bool {
	if t.Port != 0 && t.Port != port || port == 0 {
		return false
	}
	s, ok := k.view.Get(object).(*gateway.Service)
	if !ok {
		return t.Section == ""
	}
	return s.HasPort(port) && (t.Section == "" || s.Port(t.Section) == port)
}

// dictate lets whoever does so in the kind decide how the bare rules of higher
// policies are applied: the route's annotation, or the next lower policy.
func (s *stack) dictate(k *policykind.Kind, route *gateway.Route) {
	if k.LowerDecidesStrategy() {
		s.byLower()
	}
	if route == nil {
		return
	}
	if reading := k.Reading(route.Annotations); reading != nil {
		for i := range s.layers {
			if s.layers[i].Level < int(gateway.LevelRoute) {
				s.layers[i].As = reading
			}
		}
	}
}

// byLower lets each policy say how those above it are applied, in the order in
// which they are applied.
func (s *stack) byLower() {
	if len(s.layers) < 2 {
		return
	}
	s.sort()
	var as *merge.Reading
	for i := len(s.layers) - 1; i >= 0; i-- {
		s.layers[i].As = as
		as = s.policies[i].Above(as)
	}
}

// sort puts the layers into the order in which the fold applies them, the last
// one first: on a target where the oldest wins, that is the newest.
func (s *stack) sort() {
	order := make([]int, len(s.layers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := s.layers[a], s.layers[b]
		if x.Level == y.Level && x.Meet == merge.MeetOldestWins {
			x, y = y, x
		}
		return merge.Compare(x, y)
	})
	sorted := stack{}
	for _, i := range order {
		sorted.layers = append(sorted.layers, s.layers[i])
		sorted.policies = append(sorted.policies, s.policies[i])
		sorted.versions = append(sorted.versions, s.versions[i])
	}
	*s = sorted
}
