package guard

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// terminating are the policies on the paths before the write that are terminating,
// or that depend on a terminating object. Once such a policy is gone, the overrides that it
// replaces, and those that conflict with it on its target, apply. So the write is also
// compared without these policies.
type terminating struct {
	*write

	policies map[api.Ref]bool
	// at is the last path that was observed, and known are the policies above its route
	// that need no second check: paths come gateway by gateway.
	at    gateway.Path
	known []policyAtLevel
}

// policyAtLevel is a policy on a level of a path.
type policyAtLevel struct {
	policy *merge.Policy
	level  int
}

// observe adds the terminating policies of a path. The lowest policy is left out, since it
// overrides no other.
func (ev *terminating) observe(e *effective.Effective) {
	if e.Path.Gateway != ev.at.Gateway || e.Path.Set != ev.at.Set || e.Path.Service != ev.at.Service {
		ev.at, ev.known = e.Path, ev.known[:0]
	}
	for i := range e.Layers {
		layer := &e.Layers[i]
		at, above := policyAtLevel{layer.Policy, layer.Level}, gateway.Level(layer.Level) < gateway.LevelRoute
		if above && slices.Contains(ev.known, at) || !above && e.Kind.SameTarget == api.Hierarchical && (i == len(e.Layers)-1 || !effective.HasOverrides(layer)) {
			continue
		}
		if ev.old != nil && layer.Policy == &ev.old.Policy {
			continue
		}
		p, ok := ev.before.Get(e.Ref(layer.Policy)).(*policykind.Policy)
		if !ok || p.Ref() == ev.change.Object().Ref() {
			continue
		}
		terminating := ev.dependencies(e, layer.Policy, gateway.Level(layer.Level))
		if len(terminating) > 0 && ev.writtenDependsOnAll(e, terminating) && !p.Deleting {
			continue
		}
		if above {
			ev.known = append(ev.known, at)
		}
		if p.Deleting || len(terminating) > 0 {
			put(&ev.policies, p.Ref(), true)
		}
	}
}

// writtenDependsOnAll reports whether the policy that is written depends on the same
// terminating objects on a path: then it no longer applies either, once they are deleted.
func (ev *terminating) writtenDependsOnAll(e *effective.Effective, terminating [][]api.Ref) bool {
	return ev.old != nil && slices.ContainsFunc(e.Layers, func(layer merge.Layer) bool {
		return layer.Policy == &ev.old.Policy && coveredBy(terminating, ev.dependenciesBefore(effective.Override{Policy: layer.Policy, Level: gateway.Level(layer.Level)}, e))
	})
}

// without returns a view without the terminating policies.
func (ev *terminating) without(v *snapshot.View) *snapshot.View {
	changes := make([]snapshot.Change, 0, len(ev.policies))
	for ref := range ev.policies {
		changes = append(changes, snapshot.Delete(ref))
	}
	return v.With(changes...)
}

// withoutTerminatingGrants returns a view without the ReferenceGrants of a namespace that
// are being deleted or will be deleted with an owner, except the one that is written. A
// policy that needs a grant must not count on these.
func withoutTerminatingGrants(v *snapshot.View, written api.Ref) *snapshot.View {
	var gone []snapshot.Change
	for o := range v.In(written.PolicyKind(), written.Namespace) {
		if g, ok := o.(*gateway.Grant); ok && g.Deleting && g.Ref() != written {
			gone = append(gone, snapshot.Delete(g.Ref()))
		}
	}
	if len(gone) == 0 {
		return v
	}
	return v.With(gone...)
}

// remaining leaves out the policies that do not keep an override on a path: they are being
// deleted, or will be with an owner, or depend on an object of which that is true. No
// write is evaluated when they are deleted.
func (ev *terminating) remaining(o effective.Override, was, is *effective.Effective, all []*merge.Policy) []*merge.Policy {
	return slices.DeleteFunc(all, func(p *merge.Policy) bool {
		held, ok := ev.after.Get(is.Ref(p)).(*policykind.Policy)
		return !ok || held.Deleting || !ev.remains(o, was, is, p)
	})
}

// movesTo reports whether the policy of an override gives it in another place
// than before, where it depends on an object that is terminating.
func (ev *terminating) movesTo(o effective.Override, was, is *effective.Effective) bool {
	if sameAttachment(&was.Path, &is.Path) && attached(is, o.Policy, func(l gateway.Level) bool { return l == o.Level }) {
		return false
	}
	return !ev.remains(o, was, is, o.Policy)
}

// remains reports whether an override of a policy, as high as the given one or higher,
// depends on nothing that is terminating but what the given one depended on before.
func (ev *terminating) remains(o effective.Override, was, is *effective.Effective, by *merge.Policy) bool {
	var before []api.Ref
	for _, l := range is.Layers {
		if !l.Same(by) || gateway.Level(l.Level) > o.Level {
			continue
		}
		terminating := ev.dependencies(is, l.Policy, gateway.Level(l.Level))
		if len(terminating) > 0 && before == nil {
			before = ev.dependenciesBefore(o, was)
		}
		if coveredBy(terminating, before) {
			return true
		}
	}
	return false
}

// coveredBy reports whether each list has one of some objects.
func coveredBy(all [][]api.Ref, others []api.Ref) bool {
	return !slices.ContainsFunc(all, func(some []api.Ref) bool {
		return !slices.ContainsFunc(some, func(r api.Ref) bool { return slices.Contains(others, r) })
	})
}

// dependencies returns the terminating objects that a policy at a level of a
// path depends on after the write. Each list has alternatives: one of its objects would be
// enough.
//
// The path itself is not among them, nor the namespaces that it is in: its traffic ends
// with them, or is taken by a path that was compared. A gateway does not end with its
// class, nor a route with the service that is its parent.
func (ev *terminating) dependencies(e *effective.Effective, p *merge.Policy, l gateway.Level) [][]api.Ref {
	if e.Path.Virtual != nil {
		return nil
	}
	var out [][]api.Ref
	if n := namespacesOf(&e.Path); !slices.Contains([]string{n.gateway, n.set, n.service, n.route}, p.Namespace) {
		if ref := (&gateway.Namespace{Name: p.Namespace}).Ref(); ev.isTerminating(ref) {
			out = append(out, []api.Ref{ref})
		}
	}
	on := targetAt(&e.Path, l)
	if (l == gateway.LevelGatewayClass || l == gateway.LevelService || l == gateway.LevelServicePort) && ev.isTerminating(on) {
		out = append(out, []api.Ref{on})
	}
	grants := grantsOf(ev.after, e, p, on)
	if len(grants) > 0 && !slices.ContainsFunc(grants, func(r api.Ref) bool { return !ev.isTerminating(r) }) {
		out = append(out, grants)
	}
	return out
}

// dependenciesBefore returns what an override on a path depended on before the write.
func (ev *terminating) dependenciesBefore(o effective.Override, was *effective.Effective) []api.Ref {
	on := targetAt(&was.Path, o.Level)
	out := append([]api.Ref{on}, grantsOf(ev.before, was, o.Policy, on)...)
	n := namespacesOf(&was.Path)
	for _, name := range []string{o.Policy.Namespace, n.gateway, n.set, n.service, n.route} {
		out = append(out, (&gateway.Namespace{Name: name}).Ref())
	}
	return out
}

// isTerminating reports whether an object is being deleted, or will be with an owner. A
// namespace that a server does not have yet counts as terminating: it is new.
func (ev *terminating) isTerminating(ref api.Ref) bool {
	switch o := ev.after.Get(ref).(type) {
	case *gateway.Namespace:
		return o.Deleting
	case *gateway.Class:
		return o.Deleting
	case *gateway.Service:
		return o.Deleting
	case *gateway.Grant:
		return o.Deleting
	case nil:
		return ev.guard.ReadLive != nil && ref.Kind == gateway.KindNamespace
	default:
		return false
	}
}

// grantsOf returns the ReferenceGrants that allow a policy its target, or the target its
// reference to the policy; none where it needs none.
func grantsOf(v *snapshot.View, e *effective.Effective, p *merge.Policy, on api.Ref) []api.Ref {
	if on.Namespace == "" || on.Namespace == p.Namespace {
		return nil
	}
	from, to := e.Ref(p), on
	if e.Kind.NamesNamespaces() {
		from, to = to, from
	}
	var out []api.Ref
	for o := range v.In(gateway.KindOf(gateway.KindReferenceGrant), to.Namespace) {
		if g, ok := o.(*gateway.Grant); ok && g.Allows(from.PolicyKind(), from.Namespace, to) {
			out = append(out, g.Ref())
		}
	}
	return out
}

// targetAt returns the object that policies of a level of a path are attached to.
func targetAt(p *gateway.Path, l gateway.Level) api.Ref {
	switch {
	case l == gateway.LevelGatewayClass && p.Gateway != nil:
		return (&gateway.Class{Name: p.Gateway.Class}).Ref()
	case l == gateway.LevelGateway && p.Gateway != nil, l == gateway.LevelListener && p.Gateway != nil && p.Set == nil:
		return p.Gateway.Ref()
	case (l == gateway.LevelListenerSet || l == gateway.LevelListener) && p.Set != nil:
		return p.Set.Ref()
	case (l == gateway.LevelService || l == gateway.LevelServicePort) && p.Service != nil:
		return p.Service.Ref()
	case l >= gateway.LevelRoute && l <= gateway.LevelFilter && p.Route != nil:
		return p.Route.Ref()
	case l >= gateway.LevelBackend && p.Backend != nil:
		return p.Backend.Object
	default:
		return api.Ref{} // a namespace of the path, or what is no object
	}
}

// sameAttachment reports whether policies are attached to the same objects of two paths.
func sameAttachment(a, b *gateway.Path) bool {
	x, y := a.ID(), b.ID()
	return sameClass(a, b) && x.GatewayNamespace == y.GatewayNamespace && x.Gateway == y.Gateway &&
		x.SetKind == y.SetKind && x.SetNamespace == y.SetNamespace && x.Set == y.Set &&
		x.ServiceNamespace == y.ServiceNamespace && x.Service == y.Service &&
		x.RouteKind == y.RouteKind && x.RouteNamespace == y.RouteNamespace && x.Route == y.Route && x.Backend.Object == y.Backend.Object
}

// sameClass reports whether the gateways of two paths are of one class.
func sameClass(a, b *gateway.Path) bool {
	return a.Gateway == b.Gateway || a.Gateway != nil && b.Gateway != nil && a.Gateway.Class == b.Gateway.Class
}
