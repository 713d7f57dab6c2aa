package report

import (
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

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
