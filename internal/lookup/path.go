package lookup

import (
	"slices"
	"strconv"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// pathContains reports whether an object is on a path.
func pathContains(p gateway.Path, ref api.Ref) bool {
	switch ref.PolicyKind() {
	case api.PolicyKind{Kind: gateway.KindNamespace}:
		return slices.Contains(pathNamespaces(p), ref.Name)
	case api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass}:
		return p.Gateway != nil && p.Gateway.Class == ref.Name
	case api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindReferenceGrant}:
		return true // the scope of a grant is the paths that depend on it
	}
	return slices.Contains(pathObjects(p), ref)
}

// pathObjects returns the namespaced objects of a path.
func pathObjects(p gateway.Path) []api.Ref {
	var out []api.Ref
	if p.Gateway != nil {
		out = append(out, p.Gateway.Ref())
	}
	if p.Set != nil {
		out = append(out, p.Set.Ref())
	}
	if p.Service != nil {
		out = append(out, p.Service.Ref())
	}
	if p.Route != nil {
		out = append(out, p.Route.Ref())
	}
	if p.Backend != nil {
		out = append(out, p.Backend.Object)
	}
	if p.Virtual != nil {
		out = append(out, *p.Virtual)
	}
	return out
}

// pathNamespaces returns the namespaces of the objects of a path, and that of its
// clients.
func pathNamespaces(p gateway.Path) []string {
	var out []string
	for _, ref := range pathObjects(p) {
		out = append(out, ref.Namespace)
	}
	if p.Client != "" {
		out = append(out, p.Client)
	}
	return out
}

// pathContainsSection reports whether a section of an object is on a path: a
// listener, a rule by its name or as rule-N, a port by its name or number.
func pathContainsSection(v *snapshot.View, p gateway.Path, ref api.Ref, section string) bool {
	switch {
	case p.Gateway != nil && p.Set == nil && ref == p.Gateway.Ref(), p.Set != nil && ref == p.Set.Ref():
		return p.Listener != nil && p.Listener.Name == section
	case p.Route != nil && ref == p.Route.Ref():
		return p.Rule >= 0 && p.Route.RuleAt(section, p.Rule)
	case p.Backend != nil && ref == p.Backend.Object:
		return isPort(v, ref, p.Backend.Port, section)
	case p.Service != nil && ref == p.Service.Ref():
		return p.Port == 0 || isPort(v, ref, p.Port, section) // without a port, the path stands for all
	default:
		return false
	}
}

func isPort(v *snapshot.View, object api.Ref, port int32, section string) bool {
	if section == strconv.Itoa(int(port)) {
		return true
	}
	s, ok := v.Get(object).(*gateway.Service)
	return ok && port != 0 && s.Port(section) == port
}

// hasSection reports whether an object has a section of that name. An object that
// is not in the view may have any.
func hasSection(o snapshot.Object, section string) bool {
	if o, ok := o.(Reference); ok {
		return o.Kind != gateway.KindNamespace && o.Kind != gateway.KindGatewayClass
	}
	return snapshot.HasSection(o, section)
}
