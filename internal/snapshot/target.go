package snapshot

import (
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// On yields the policies that target an object, by name or by label selector, each with
// the target resolved to that object; twice for two sections of it. It includes invalid
// policies, and policies that are not allowed to target the object, with a target that
// is refused. They are sorted by kind, namespace and name; those with selectors follow, and
// then those that the object attaches to itself.
func (v *View) On(object api.Ref) iter.Seq2[*policykind.Policy, policykind.Target] {
	return func(yield func(*policykind.Policy, policykind.Target) bool) { v.Targeting().On(object, yield) }
}

// selected yields the policies that select an object by its labels, and reports whether to
// continue.
func (v *View) selected(object api.Ref, yield func(*policykind.Policy, policykind.Target) bool) bool {
	if v.selecting.empty() {
		return true
	}
	namespaces := []string{object.Namespace, ""}
	if object.Namespace == "" {
		namespaces = namespaces[1:]
	}
	for _, namespace := range namespaces {
		for p := range v.selecting.withPrefix(key(object.Group, object.Kind, namespace)) {
			for i, t := range p.Targets {
				if t.Ref.Namespace != namespace || !v.Selects(p, t, object) || v.isDuplicate(p, i, object) {
					continue
				}
				if !yield(p, v.granted(p, resolved(p, t, object))) {
					return false
				}
			}
		}
	}
	return true
}

// isDuplicate reports whether an object that the i-th target of a policy selects is also
// another target of it: by name, or by a previous selector.
func (v *View) isDuplicate(p *policykind.Policy, i int, object api.Ref) bool {
	t := p.Targets[i]
	for j, o := range p.Targets {
		if o.Section != t.Section || o.Port != t.Port || o.Refused != "" && t.Refused == "" {
			continue
		}
		if o.Selector == nil && o.Ref == object || j < i && v.Selects(p, o, object) {
			return true
		}
	}
	return false
}

// resolved returns the target of a policy's selector as the object that it selects. An
// object in the policy's own namespace is not a consumer target.
func resolved(p *policykind.Policy, t policykind.Target, object api.Ref) policykind.Target {
	t.Ref, t.Selector = object, nil
	t.Consumer = t.Consumer && object.Namespace != p.Namespace
	return t
}

// Selects reports whether a target of a policy selects an object.
func (v *View) Selects(p *policykind.Policy, t policykind.Target, object api.Ref) bool {
	if t.Selector == nil || t.Ref.PolicyKind() != object.PolicyKind() || t.Selector.Name != "" && t.Selector.Name != object.Name {
		return false
	}
	o := v.Get(object)
	if o == nil || !t.Selector.Labels.Matches(labels.Set(gateway.LabelsOf(o))) {
		return false
	}
	switch {
	case object.Namespace == "" || object.Namespace == p.Namespace || t.Selector.AnyNamespace:
		return true
	default:
		return t.Selector.Namespaces != nil && t.Selector.Namespaces.Matches(v.NamespaceLabels(object.Namespace))
	}
}

// granted marks a target as refused if it needs a ReferenceGrant and has none.
func (v *View) granted(p *policykind.Policy, t policykind.Target) policykind.Target {
	if t.Grant && t.Refused == "" && t.Ref.Namespace != p.Namespace && !v.Granted(p.Kind.Ref(), p.Namespace, t.Ref) {
		t.Refused = fmt.Sprintf("no ReferenceGrant in namespace %s allows policies of kind %s in namespace %s to target %s",
			t.Ref.Namespace, p.Kind.Kind, p.Namespace, t.Ref)
	}
	return t
}

// Granted reports whether a ReferenceGrant allows objects of a kind in a namespace to
// refer to an object in another namespace.
func (v *View) Granted(from api.PolicyKind, namespace string, to api.Ref) bool {
	grants := api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindReferenceGrant}
	for o := range v.In(grants, to.Namespace) {
		if g, ok := o.(*gateway.Grant); ok && g.Allows(from, namespace, to) {
			return true
		}
	}
	return false
}

// NoGrant returns that no ReferenceGrant allows an object to refer to another one.
func NoGrant(from, to api.Ref) string {
	return fmt.Sprintf("no ReferenceGrant in namespace %s allows %s to refer to %s", to.Namespace, from, to)
}

// DependingOn yields the policies whose targets may depend on a ReferenceGrant, some of them
// twice: those with targets in its namespace, and those there that objects name with their
// namespace.
func (v *View) DependingOn(g *gateway.Grant) iter.Seq[*policykind.Policy] {
	return func(yield func(*policykind.Policy) bool) {
		for _, to := range g.To {
			kind := api.PolicyKind{Group: to.Group, Kind: to.Kind}
			all := []iter.Seq[*policykind.Policy]{v.TargetsIn(kind, g.Namespace), v.Selecting(kind)}
			if k := v.Kind(kind); k != nil && k.NamesNamespaces() {
				all = append(all, objectsOf[*policykind.Policy](v.In(kind, g.Namespace)))
			}
			for _, policies := range all {
				for p := range policies {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// Targets returns the targets of a policy, and then those that attach it to themselves. A
// selector is resolved to the objects that it selects, by namespace and name; it is returned
// itself if it selects none.
func (v *View) Targets(p *policykind.Policy) []policykind.Target {
	out := make([]policykind.Target, 0, len(p.Targets))
	for i, t := range p.Targets {
		if t.Selector == nil {
			out = append(out, v.granted(p, t))
			continue
		}
		selected := false
		for o := range v.candidates(p, t) {
			if !v.Selects(p, t, o.Ref()) {
				continue
			}
			selected = true
			if !v.isDuplicate(p, i, o.Ref()) {
				out = append(out, v.granted(p, resolved(p, t, o.Ref())))
			}
		}
		if !selected {
			out = append(out, t)
		}
	}
	return slices.AppendSeq(out, v.attaching(p))
}

// candidates yields the objects from which a target selects.
func (v *View) candidates(p *policykind.Policy, t policykind.Target) iter.Seq[Object] {
	kind := t.Ref.PolicyKind()
	if t.Selector.Own() && !gateway.ClusterScoped(kind) {
		return v.In(kind, p.Namespace)
	}
	return v.Objects(kind)
}

// TargetsIn yields the policies with a target of a kind in a namespace, by name; a
// policy is repeated for each of these targets.
func (v *View) TargetsIn(kind api.PolicyKind, namespace string) iter.Seq[*policykind.Policy] {
	return v.byTarget.withPrefix(key(kind.Group, kind.Kind, namespace))
}

// Selecting yields the policies that select objects of a kind not only in their own
// namespace.
func (v *View) Selecting(kind api.PolicyKind) iter.Seq[*policykind.Policy] {
	return v.selecting.withPrefix(key(kind.Group, kind.Kind, ""))
}
