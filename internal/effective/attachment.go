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
		out[i] = acceptedOn(w.kinds[i].kind, out[i])
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

// acceptedOn returns the policies of an object without those that conflict with an
// older one.
func acceptedOn(k *policykind.Kind, all []attachment) []attachment {
	if len(all) > 1 && mayConflict(k) {
		return accepted(all)
	}
	return all
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

// mayConflict reports whether policies of the kind can conflict on a target.
func mayConflict(k *policykind.Kind) bool {
	return k.SameTarget == api.None || k.SameTarget == api.FieldConflict
}

// accepted returns the policies without those that conflict with an older one.
func accepted(all []attachment) []attachment {
	var out []attachment
	for _, a := range oldestFirst(all) {
		if conflictingPolicy(a, out) == nil {
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

// conflictingPolicy returns the accepted policy with which another one conflicts, or
// nil (SEMANTICS section 5, none and fieldConflict).
func conflictingPolicy(a attachment, accepted []attachment) *policykind.Policy {
	for _, h := range accepted {
		if h.policy == a.policy || !h.target.SamePlace(a.target) {
			continue
		}
		if a.policy.Kind.SameTarget == api.None || rulesConflict(h.policy, a.policy) {
			return h.policy
		}
	}
	return nil
}

// rulesConflict reports whether two policies have rules for the same value.
func rulesConflict(a, b *policykind.Policy) bool {
	for _, x := range a.Blocks {
		for _, y := range b.Blocks {
			if rulesOverlap(x.Rules, y.Rules) {
				return true
			}
		}
	}
	return false
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

// Holder returns the policy that is accepted on a target of p, which must not be a
// selector: p itself, or an older policy that it conflicts with.
func Holder(v *snapshot.View, p *policykind.Policy, t policykind.Target) *policykind.Policy {
	if !mayConflict(p.Kind) {
		return p
	}
	var all []attachment
	for other, target := range v.On(t.Ref) {
		if other.Kind == p.Kind && other.Invalid == nil && target.Refused == "" {
			all = append(all, attachment{other, target})
		}
	}
	if rival := conflictingPolicy(attachment{p, t}, accepted(all)); rival != nil {
		return rival
	}
	return p
}

// attachments are the policies of a kind on the objects of one root and one route.
type attachments struct {
	mesh, class, gatewayNamespace, gateway []attachment
	serviceNamespace, service              []attachment
	routeNamespace, route                  []attachment
}
