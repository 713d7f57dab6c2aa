package worlds

import (
	"fmt"
	"strings"
)

// GatewayDoc returns a gateway in namespace infra with HTTP listeners on ports
// from 80 on, open to routes and listener sets of all namespaces, for World.
func GatewayDoc(name, class string, listeners ...string) string {
	return fmt.Sprintf("kind: Gateway\nmetadata: {namespace: infra, name: %s}\nspec:\n  gatewayClassName: %s\n"+
		"  allowedListeners: {namespaces: {from: All}}\n%s", name, class, listenersDoc(80, listeners))
}

// SetDoc returns a ListenerSet that adds listeners to a gateway of namespace infra, on
// ports from 8080.
func SetDoc(namespace, name, gw string, listeners ...string) string {
	return fmt.Sprintf("kind: ListenerSet\nmetadata: {namespace: %s, name: %s}\nspec:\n  parentRef: {namespace: infra, name: %s}\n%s",
		namespace, name, gw, listenersDoc(8080, listeners))
}

func listenersDoc(port int, names []string) string {
	var out strings.Builder
	out.WriteString("  listeners:\n")
	for i, name := range names {
		fmt.Fprintf(&out, "  - {name: %s, port: %d, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n", name, port+i)
	}
	return out.String()
}

// RouteDoc returns an HTTPRoute in namespace app on gateways of namespace infra;
// rules is YAML.
func RouteDoc(name, rules string, gateways ...string) string {
	parents := make([]string, len(gateways))
	for i, g := range gateways {
		parents[i] = "{namespace: infra, name: " + g + "}"
	}
	return RouteTo("HTTPRoute", "app", name, rules, parents...)
}

// RouteTo returns a route of any kind with parents; parents and rules are YAML.
func RouteTo(kind, namespace, name, rules string, parents ...string) string {
	return fmt.Sprintf("kind: %s\nmetadata: {namespace: %s, name: %s}\nspec:\n  rules: %s\n  parentRefs: [%s]\n",
		kind, namespace, name, rules, strings.Join(parents, ", "))
}

// ToGateway returns a parentRef to a gateway of namespace infra, for RouteTo.
func ToGateway(name string) string { return "{namespace: infra, name: " + name + "}" }

// ToSet returns a parentRef to a ListenerSet.
func ToSet(namespace, name string) string {
	return fmt.Sprintf("{kind: ListenerSet, namespace: %s, name: %s}", namespace, name)
}

// ToService returns a parentRef to a Service.
func ToService(namespace, name string) string {
	return fmt.Sprintf(`{group: "", kind: Service, namespace: %s, name: %s}`, namespace, name)
}

// ServiceDoc returns a Service with these ports, named p and the number.
func ServiceDoc(namespace, name string, ports ...int) string {
	list := make([]string, len(ports))
	for i, n := range ports {
		list[i] = fmt.Sprintf("{name: p%d, port: %d}", n, n)
	}
	return fmt.Sprintf("kind: Service\nmetadata: {namespace: %s, name: %s}\nspec: {ports: [%s]}\n", namespace, name, strings.Join(list, ", "))
}

// GrantDoc returns a ReferenceGrant; from and to are YAML.
func GrantDoc(namespace, name, from, to string) string {
	return fmt.Sprintf("kind: ReferenceGrant\nmetadata: {namespace: %s, name: %s}\nspec: {from: [%s], to: [%s]}\n", namespace, name, from, to)
}

// ProfileDoc returns a PolicyProfile of an inherited kind of the world's group
// with targetRefs that may name unnamed rules; spec is the rest of the profile, as lines of YAML.
func ProfileDoc(kind, spec string) string {
	return ClassProfileDoc("inherited", kind, "targets: {fields: [targetRefs], unnamedRules: true}\n"+spec)
}

// ClassProfileDoc returns a PolicyProfile of a kind of a class; spec is the rest
// of it.
func ClassProfileDoc(class, kind, spec string) string {
	return fmt.Sprintf("kind: PolicyProfile\nmetadata: {name: %s.%s}\nspec:\n  group: %s\n  kind: %s\n  class: %s\n  %s\n",
		strings.ToLower(kind), Group, Group, kind, class, indented(spec))
}

// PolicyDoc returns a policy; spec is lines of YAML.
func PolicyDoc(kind, namespace, name, spec string) string {
	return fmt.Sprintf("kind: %s\nmetadata: {namespace: %s, name: %s}\nspec:\n  %s\n", kind, namespace, name, indented(spec))
}

func indented(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") }

// Docs joins documents.
func Docs(all ...string) string { return strings.Join(all, "\n---\n") }
