package guard

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// attachedPolicy is a policy on a path, seen from a PolicyConstraint of a namespace at a
// level of it.
type attachedPolicy struct {
	namespace string
	level     constraint.Level
	on        *effective.Effective
	policy    api.Ref
}

// open reports whether the constraint reads the values of the policy: those of its own
// namespace, and those that the owner of an object below the constraint gives that
// object, which the owner placed there. Whatever else other namespaces attach is
// opaque, though it is attached to an object of the constraint's own namespace: users
// could attach it themselves, by a label, a ReferenceGrant or a backendRef, to read it.
func (a *attachedPolicy) open() bool {
	return a.policy.Namespace == a.namespace || a.attachments(func(l gateway.Level) bool {
		return l > a.level && namespaceAt(&a.on.Path, l) == a.policy.Namespace && !foreignBackend(&a.on.Path, l)
	}, true)
}

// bound reports whether the constraint binds writes of the policy: those of its own
// namespace at its level and below. One of another namespace it binds there, too, but
// not where it is attached to a backend of a third one, or by a ReferenceGrant of the
// constraint's namespace: else that namespace could close it to its owner.
func (a *attachedPolicy) bound() bool {
	own := a.policy.Namespace == a.namespace
	return a.attachments(func(l gateway.Level) bool {
		return l >= a.level && (own || !foreignBackend(&a.on.Path, l) && !a.granted(l))
	}, false)
}

// granted reports whether the constraint's namespace let the policy in at a level.
func (a *attachedPolicy) granted(l gateway.Level) bool {
	return a.on.Kind.Targets.Namespaces == api.NamespacesReferenceGrant && namespaceAt(&a.on.Path, l) == a.namespace
}

// attachments reports whether all levels at which the policy is attached are so, or
// one of them.
func (a *attachedPolicy) attachments(is func(gateway.Level) bool, all bool) bool {
	if a.on == nil {
		return all
	}
	for _, l := range a.on.Layers {
		if a.on.Ref(l.Policy) == a.policy && is(gateway.Level(l.Level)) != all {
			return !all
		}
	}
	return all
}

// namespaceAt returns the namespace of the object at a level of a path.
func namespaceAt(p *gateway.Path, l gateway.Level) string {
	e := p.Element(l)
	if e.Kind == gateway.KindNamespace {
		return e.Name
	}
	return e.Namespace
}

// foreignBackend reports whether the object at a level is a backend of another
// namespace than its route.
func foreignBackend(p *gateway.Path, l gateway.Level) bool {
	return (l == gateway.LevelBackend || l == gateway.LevelBackendPort) && p.Route != nil && namespaceAt(p, l) != p.Route.Namespace
}

// namespaces are those of the objects of a path.
type namespaces struct{ gateway, set, service, route, backend string }

func namespacesOf(p *gateway.Path) (n namespaces) {
	if p.Gateway != nil {
		n.gateway = p.Gateway.Namespace
	}
	if p.Set != nil {
		n.set = p.Set.Namespace
	}
	if p.Service != nil {
		n.service = p.Service.Namespace
	}
	if p.Route != nil {
		n.route = p.Route.Namespace
	}
	switch {
	case p.Backend != nil:
		n.backend = p.Backend.Object.Namespace
	case p.Virtual != nil:
		n.backend = p.Virtual.Namespace
	}
	return n
}
