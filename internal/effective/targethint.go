package effective

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// MissingParent returns why a parentRef refers to nothing: the object does not exist, or
// has no such listener or port; "" if it refers to something.
func MissingParent(v *snapshot.View, p gateway.Parent) string {
	switch o := v.Get(p.Ref()).(type) {
	case *gateway.Gateway, *gateway.ListenerSet:
		return p.NoListener(listenersOf(o))
	case *gateway.Service:
		if by := (&gateway.Route{Parents: []gateway.Parent{p}}); len(by.PortsOf(o)) > 0 {
			return ""
		}
		return o.Ref().String() + " does not have the port that the parentRef names"
	default:
		return p.Ref().String() + " does not exist"
	}
}

// RouteHint says which object or listener the parentRefs of a route that no parent accepts
// probably mean, to readers of all objects; "" if none is known, and for other objects.
func RouteHint(v *snapshot.View, object api.Ref) string {
	r, ok := v.Get(object).(*gateway.Route)
	if !ok {
		return ""
	}
	for _, p := range r.Parents {
		if hint := ParentHint(v, p, true); hint != "" && MissingParent(v, p) != "" {
			return hint
		}
	}
	return ""
}

// ParentHint says what a parentRef that refers to nothing probably means: the nearest name, the
// sections that exist, or, for readers of all objects, the same name in another namespace; "" if
// none is known.
func ParentHint(v *snapshot.View, p gateway.Parent, readsAll bool) string {
	meant, elsewhere := meantBy(v, p.Ref(), p.Section, readsAll)
	switch {
	case elsewhere != api.Ref{}:
		return fmt.Sprintf("did you mean %s?", elsewhere)
	case meant == "":
		return ListSections(v.Get(p.Ref()))
	}
	return meant
}

// ParentKindMeant returns the kind of parents that is meant by a kind which is none, "" if none
// is close.
func ParentKindMeant(kind string) string {
	switch meant := editdistance.Closest(kind, []string{gateway.KindGateway, gateway.KindListenerSet, gateway.KindService}); meant {
	case "", gateway.KindService:
		return meant
	default:
		return gateway.KindOf(meant).String()
	}
}

// ListSections lists the listeners or ports of an object, each with its name and number, or the
// names of its rules; "" if there are none.
func ListSections(o snapshot.Object) string {
	what, all := "listeners", []string(nil)
	switch o := o.(type) {
	case *gateway.Route:
		what, all = "named rules", SectionsOf(o)
	case *gateway.Service:
		what = "ports"
		for _, port := range o.Ports {
			name := strconv.Itoa(int(port.Number))
			if port.Name != "" {
				name = fmt.Sprintf("%s (port %s)", port.Name, name)
			}
			all = append(all, name)
		}
	default:
		for _, l := range listenersOf(o) {
			all = append(all, fmt.Sprintf("%s (port %d)", l.Name, l.Port))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("its %s are %s%s", what, strings.Join(all[:min(len(all), maxSections)], ", "), api.More(", and ", len(all)-maxSections, ""))
}

// meantBy says which object is meant by a reference to one that does not exist, or which
// section of one that does: the nearest name, or the object of the same name elsewhere.
func meantBy(v *snapshot.View, ref api.Ref, section string, readsAll bool) (meant string, elsewhere api.Ref) {
	if o := v.Get(ref); o != nil {
		if name := editdistance.Closest(section, SectionsOf(o)); name != "" && name != section {
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
		if o.Ref().Name == ref.Name {
			return "", o.Ref()
		}
	}
	return "", elsewhere
}

// SectionsOf returns the names of the sections of an object.
func SectionsOf(o snapshot.Object) []string {
	var out []string
	for _, l := range listenersOf(o) {
		out = append(out, l.Name)
	}
	if r, ok := o.(*gateway.Route); ok {
		for _, rule := range r.Rules {
			out = append(out, rule.Name)
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// listenersOf returns the listeners of a gateway or listener set itself, nil for other
// objects.
func listenersOf(o snapshot.Object) []gateway.Listener {
	switch o := o.(type) {
	case *gateway.Gateway:
		return o.Listeners
	case *gateway.ListenerSet:
		return o.Listeners
	default:
		return nil
	}
}
