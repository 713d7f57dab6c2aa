package effective

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/editdistance"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// TargetHint says which object or section a target that does not exist probably means, ""
// if none is known: the nearest name, or, for readers of all objects, the same name in
// another namespace.
func TargetHint(v *snapshot.View, t api.Target, readsAll bool) string {
	if t.Reason != api.TargetNotFound || t.Refused != "" || t.Selector != "" {
		return ""
	}
	meant, elsewhere := meantBy(v, t.Target, t.Section, readsAll)
	if elsewhere != (api.Ref{}) {
		return fmt.Sprintf("%s exists: create the policy in namespace %s, or choose another target", elsewhere, elsewhere.Namespace)
	}
	return meant
}

// ParentHint says which object or listener the parentRefs of a route that no parent accepts
// probably mean, to readers of all objects; "" if none is known, and for other objects.
func ParentHint(v *snapshot.View, object api.Ref) string {
	r, ok := v.Get(object).(*gateway.Route)
	if !ok {
		return ""
	}
	for _, p := range r.Parents {
		meant, elsewhere := meantBy(v, p.Ref(), p.Section, true)
		if elsewhere != (api.Ref{}) {
			return fmt.Sprintf("did you mean %s?", elsewhere)
		}
		if meant != "" {
			return meant
		}
	}
	return ""
}

// meantBy says which object is meant by a reference to one that does not exist, or which
// section of one that does: the nearest name, or the object of the same name elsewhere.
func meantBy(v *snapshot.View, ref api.Ref, section string, readsAll bool) (meant string, elsewhere api.Ref) {
	if o := v.Get(ref); o != nil {
		if name := editdistance.Closest(section, sectionsOf(o)); name != "" && name != section {
			meant = fmt.Sprintf("did you mean section %s?", name)
		}
		return meant, elsewhere
	}
	var names []string
	for o := range v.In(ref.PolicyKind(), ref.Namespace) {
		names = append(names, o.Ref().Name)
	}
	if name := editdistance.Closest(ref.Name, names); name != "" {
		ref.Name = name
		return fmt.Sprintf("did you mean %s?", ref), elsewhere
	}
	if !readsAll {
		return "", elsewhere
	}
	for o := range v.Objects(ref.PolicyKind()) {
		if o := o.Ref(); o.Name == ref.Name && (elsewhere == api.Ref{} || o.Namespace < elsewhere.Namespace) {
			elsewhere = o
		}
	}
	return "", elsewhere
}

// sectionsOf returns the names of the sections of an object.
func sectionsOf(o snapshot.Object) []string {
	var out []string
	add := func(listeners []gateway.Listener) {
		for _, l := range listeners {
			out = append(out, l.Name)
		}
	}
	switch o := o.(type) {
	case *gateway.Gateway:
		add(o.Listeners)
	case *gateway.ListenerSet:
		add(o.Listeners)
	case *gateway.Route:
		for _, r := range o.Rules {
			out = append(out, r.Name)
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}
