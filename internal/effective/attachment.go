package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// attachment is a policy and one of its targets.
type attachment struct {
	policy *policykind.Policy
	target policykind.Target
}

// findAttached returns the policies that are accepted on an object, by kind; nil if
// there are none.
func (w *walk) findAttached(object api.Ref) [][]attachment {
	var out [][]attachment
	w.targeting.On(object, func(p *policykind.Policy, t policykind.Target) bool {
		if kind := w.kindOf(p, t); kind >= 0 {
			if out == nil {
				out = make([][]attachment, len(w.kinds))
			}
			out[kind] = append(out[kind], attachment{p, t})
		}
		return true
	})
	if out != nil && targetMissing(w.view, object) {
		return nil
	}
	for i := range out {
		out[i] = w.kinds[i].sharing.counted(out[i])
	}
	return out
}

// kindOf returns the index of the kind of a policy on a target, or -1 if the walk does
// not have the kind or the policy has no effect there.
func (w *walk) kindOf(p *policykind.Policy, t policykind.Target) int {
	if p.Invalid != nil || t.Refused != "" {
		return -1
	}
	for i := range w.kinds {
		if w.kinds[i].kind == p.Kind {
			return i
		}
	}
	return -1
}

// targetMissing reports whether an object that other objects refer to does not exist:
// a class or a backend. A policy on it has no target.
func targetMissing(v *snapshot.View, object api.Ref) bool {
	switch object.PolicyKind() {
	case api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass}, api.PolicyKind{Kind: gateway.KindService}:
		return v.Get(object) == nil
	default:
		return false
	}
}

// counted returns the policies of an object that are on its paths: the accepted ones, or all
// in kinds in which several exclude each other, at some gateways at least (stackBuilder.here).
func (s *sharing) counted(all []attachment) []attachment {
	if s.kind.SameTarget == api.Alone || len(s.kind.Targets.Alone) > 0 {
		return all
	}
	return s.accepted(all)
}

// forClient returns those of the accepted policies of an object that hold it for the clients of
// a namespace.
func (s *sharing) forClient(all []attachment, client string) []attachment {
	if s.kind.Targets.Namespaces != api.NamespacesConsumer || !s.kind.MayConflict() {
		return all
	}
	var out []attachment
	for _, a := range all {
		if !a.target.Consumer || a.policy.Namespace == client {
			a.target.Consumer = false // here it conflicts with those for all clients
			out = append(out, a)
		}
	}
	return s.accepted(out)
}

// accepted returns the policies of an object without those that conflict with an older
// one.
func (s *sharing) accepted(all []attachment) []attachment {
	if !s.kind.MayConflict() || len(all) == 0 || len(all) == 1 && !s.kind.Targets.AllOrNone {
		return all
	}
	var out []attachment
	for _, a := range oldestFirst(all) {
		if s.rival(a, out) == nil {
			out = append(out, a)
		}
	}
	return out
}

func oldestFirst(all []attachment) []attachment {
	return slices.SortedStableFunc(slices.Values(all), func(a, b attachment) int { return compareAge(a.policy, b.policy) })
}

func compareAge(a, b *policykind.Policy) int {
	return merge.Compare(merge.Layer{Policy: &a.Policy}, merge.Layer{Policy: &b.Policy})
}

// rival returns the policy that keeps another one off its target, or nil: an accepted one
// on that target, or on any target of a policy that is accepted on all or on none.
func (s *sharing) rival(a attachment, accepted []attachment) *policykind.Policy {
	if !s.kind.Targets.AllOrNone {
		return s.conflicting(a, accepted)
	}
	rival, known := s.rivals[a.policy]
	if known {
		return rival
	}
	for _, t := range s.view.Targets(a.policy) {
		if rival == nil && t.Refused == "" && Exists(s.view, s.kind, t) {
			older := slices.DeleteFunc(s.on(t.Ref), func(o attachment) bool { return compareAge(o.policy, a.policy) >= 0 })
			rival = s.conflicting(attachment{a.policy, t}, s.accepted(older))
		}
	}
	if s.rivals == nil {
		s.rivals = make(map[*policykind.Policy]*policykind.Policy)
	}
	s.rivals[a.policy] = rival
	return rival
}

// on returns the policies of the kind on an object.
func (s *sharing) on(object api.Ref) []attachment {
	var out []attachment
	for p, t := range s.view.On(object) {
		if p.Kind == s.kind && p.Invalid == nil && t.Refused == "" {
			out = append(out, attachment{p, t})
		}
	}
	return out
}

// conflicting returns the accepted policy with which another one conflicts on its target, or
// nil (SEMANTICS section 5, none and fieldConflict). One that has no effect because of what
// it shares conflicts with none.
func (s *sharing) conflicting(a attachment, accepted []attachment) *policykind.Policy {
	for _, h := range accepted {
		if h.target.Consumer && (!a.target.Consumer || h.policy.Namespace != a.policy.Namespace) {
			continue // it holds the target for the clients of its own namespace alone
		}
		if compareAge(h.policy, a.policy) < 0 && h.target.SamePlace(a.target) && (s.kind.OnlyOne(a.target) || s.kind.SameTarget == api.FieldConflict && rulesConflict(h.policy, a.policy)) &&
			s.sharedPath(a.policy) == "" && s.sharedPath(h.policy) == "" {
			return h.policy
		}
	}
	return nil
}

// rulesConflict reports whether two policies have rules for the same value.
func rulesConflict(a, b *policykind.Policy) bool {
	for _, x := range ruleLists(a) {
		for _, y := range ruleLists(b) {
			if rulesOverlap(x, y) {
				return true
			}
		}
	}
	return false
}

// ruleLists returns the rules of a policy, those without an effect as well.
func ruleLists(p *policykind.Policy) [][]merge.Rule {
	out := [][]merge.Rule{p.False}
	for _, b := range p.Blocks {
		out = append(out, b.Rules)
	}
	return out
}

// rulesOverlap reports whether two sorted lists have rules for the same value.
func rulesOverlap(a, b []merge.Rule) bool {
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

// Conflict is a policy that is not accepted on a target, since another one on it comes first.
type Conflict struct {
	Policy, By *policykind.Policy
	Target     policykind.Target
}

// Conflicts returns the policies that are not accepted on an object because of others.
func Conflicts(v *snapshot.View, object api.Ref) []Conflict {
	kinds := make(map[*policykind.Kind][]attachment)
	for p, t := range v.On(object) {
		if p.Kind.MayConflict() && p.Invalid == nil && t.Refused == "" && Exists(v, p.Kind, t) {
			kinds[p.Kind] = append(kinds[p.Kind], attachment{p, t})
		}
	}
	var out []Conflict
	for kind, all := range kinds {
		s := sharing{view: v, kind: kind}
		accepted := s.accepted(all)
		for _, a := range all {
			if by := s.rival(a, accepted); by != nil {
				out = append(out, Conflict{a.policy, by, a.target})
			}
		}
	}
	return out
}

// attachedTo returns the policies on an object that many paths share, by kind; nil if
// there are none. It caches them.
func (w *walk) attachedTo(object api.Ref) [][]attachment {
	all, ok := w.shared[object]
	if !ok {
		if w.shared == nil {
			w.shared = make(map[api.Ref][][]attachment)
		}
		all = w.findAttached(object)
		w.shared[object] = all
	}
	return all
}

// own returns the policies of the kind.
func (k *stackBuilder) own(all [][]attachment) []attachment {
	if all == nil {
		return nil
	}
	return all[k.index]
}

// attached returns the policies of the kind on an object that many paths share.
func (k *stackBuilder) attached(object api.Ref) []attachment {
	return k.here(k.own(k.attachedTo(object)))
}

// here leaves out the policies on a backend that conflict with an older one, in kinds in which
// several exclude each other, but not at this gateway.
func (k *stackBuilder) here(all []attachment) []attachment {
	if len(k.kind.Targets.Alone) == 0 || k.unread.alone {
		return all
	}
	return k.sharing.accepted(all)
}
