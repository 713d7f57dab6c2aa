package commands

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"overrule.dev/overrule/internal/gateway"
)

// checkRead returns an error if the user is not allowed to list something by which a
// request is routed: the answer would be wrong, or that nothing serves it.
func (s *source) checkRead(q *gateway.Request, mesh bool) error {
	var errs []error
	for _, p := range s.unread {
		if resource, _, _ := strings.Cut(p.Resource, "."); apierrors.IsForbidden(p.Err) && isRoutedBy(q, resource, mesh) {
			errs = append(errs, p.Err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("find where the request goes: %w; or specify manifests with -f", errors.Join(errs...))
}

// isRoutedBy reports whether objects of a resource decide where a request goes.
func isRoutedBy(q *gateway.Request, resource string, mesh bool) bool {
	switch resource {
	case "services":
		return mesh
	case "namespaces", "listenersets", "xlistenersets":
		return !mesh
	case "tlsroutes":
		return q.Transport == gateway.TransportTLS
	case "tcproutes":
		return mesh || q.Transport == gateway.TransportTLS || q.Transport == gateway.TransportTCP
	case "udproutes":
		return q.Transport == gateway.TransportUDP
	default:
		return false // Gateways, HTTPRoutes and GRPCRoutes are always read
	}
}
