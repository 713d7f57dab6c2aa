package gateway

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// RejectReason returns why no listener of the object that a parentRef of a route refers
// to accepts the route, empty if one does. namespaceLabels are those of the route's
// namespace.
//
// It names listeners as the parentRef does, and shows nothing else of them: the
// reader may not be allowed to read the object.
func RejectReason(r *Route, p Parent, listeners []Listener, namespaceLabels labels.Set) string {
	if why := p.NoListener(listeners); why != "" {
		return why
	}
	none := func(does string) string { return fmt.Sprintf("no listener%s of %s %s", p.section(), p.Ref(), does) }
	remaining := slices.DeleteFunc(slices.Clone(listeners), func(l Listener) bool {
		return !p.selects(&l) || !l.Namespaces.Allows(p.Namespace, r.Namespace, namespaceLabels)
	})
	if len(remaining) == 0 {
		return none("allows routes from namespace " + r.Namespace)
	}
	if remaining = slices.DeleteFunc(remaining, func(l Listener) bool { return !l.allowsKind(r.Kind) }); len(remaining) == 0 {
		return none(fmt.Sprintf("allows routes of kind %s from namespace %s", r.Kind, r.Namespace))
	}
	if !slices.ContainsFunc(remaining, func(l Listener) bool { return l.acceptsHostnames(r.Hostnames) }) {
		return none("that allows the route has a hostname that intersects with its hostnames")
	}
	return ""
}

// NoListener returns why the parentRef means none of the listeners of the object that it
// refers to, empty if it means one.
func (p Parent) NoListener(listeners []Listener) string {
	if slices.ContainsFunc(listeners, func(l Listener) bool { return p.selects(&l) }) {
		return ""
	}
	return fmt.Sprintf("%s has no listener%s", p.Ref(), p.section())
}

// section formats the section and port of a parentRef, to follow "listener".
func (p Parent) section() string {
	var b strings.Builder
	if p.Section != "" {
		fmt.Fprintf(&b, " named %s", p.Section)
	}
	if p.Port != 0 {
		fmt.Fprintf(&b, " with port %d", p.Port)
	}
	return b.String()
}
