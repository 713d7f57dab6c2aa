package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/editdistance"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// targetHint says which object or section a target that does not exist probably means, ""
// if none is known: the nearest name, or, for readers of all objects, the same name in
// another namespace.
func (ev *evaluation) targetHint(t api.Target) string {
	ref := t.Target
	if o := ev.after.Get(ref); o != nil {
		if meant := editdistance.Closest(t.Section, sectionsOf(o)); meant != "" {
			return fmt.Sprintf("did you mean section %s?", meant)
		}
		return ""
	}
	var names, namespaces []string
	for o := range ev.after.In(ref.PolicyKind(), ref.Namespace) {
		names = append(names, o.Ref().Name)
	}
	if meant := editdistance.Closest(ref.Name, names); meant != "" {
		ref.Name = meant
		return fmt.Sprintf("did you mean %s?", ref)
	}
	if !ev.guard.ReadsAll {
		return ""
	}
	for o := range ev.after.Objects(ref.PolicyKind()) {
		if o.Ref().Name == ref.Name {
			namespaces = append(namespaces, o.Ref().Namespace)
		}
	}
	if len(namespaces) == 0 {
		return ""
	}
	ref.Namespace = slices.Min(namespaces)
	return fmt.Sprintf("%s exists: create the policy in namespace %s, or choose another target", ref, ref.Namespace)
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
