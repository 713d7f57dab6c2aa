package report

import (
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// PathName returns a path as the tables of the plugin show it, such as
// "Gateway infra/edge#http > HTTPRoute app/toystore#toys".
func PathName(path []api.PathElement) string {
	var parts []string
	for i, e := range path {
		switch {
		case (e.Kind == "GatewayClass" || e.Kind == "Namespace") && i < len(path)-1:
			continue
		case len(parts) > 0 && e.Section != "" && isSection(e.Kind):
			parts[len(parts)-1] += "#" + e.Section
			if e.Member != "" {
				parts[len(parts)-1] += "." + e.Member
			}
		default:
			parts = append(parts, e.String())
		}
	}
	return strings.Join(parts, " > ")
}

// isSection says whether elements of the kind are sections of the element before.
func isSection(kind string) bool { return kind == "Listener" || strings.HasSuffix(kind, "RouteRule") }

// routeNamespace returns the namespace of the route of a path; without a route, that of
// the last element that has one.
func routeNamespace(path []api.PathElement) string {
	namespace := ""
	for _, e := range path {
		if e.Namespace != "" {
			namespace = e.Namespace
		}
		if strings.HasSuffix(e.Kind, "RouteRule") {
			break
		}
	}
	return namespace
}
