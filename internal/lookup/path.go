package lookup

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// pathContains reports whether an object is on a path.
func pathContains(p *gateway.Path, ref api.Ref) bool {
	switch ref.PolicyKind() {
	case api.PolicyKind{Kind: gateway.KindNamespace}:
		return slices.Contains(pathNamespaces(p), ref.Name)
	case api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindReferenceGrant}:
		return true // the scope of a grant is the paths that depend on it
	}
	for o := range p.Objects {
		if o.Ref == ref {
			return true
		}
	}
	return false
}

// pathNamespaces returns the namespaces of the objects of a path, and that of its
// clients.
func pathNamespaces(p *gateway.Path) []string {
	var out []string
	for o := range p.Objects {
		out = append(out, o.Namespace)
	}
	return append(out, p.Client)
}

// pathContainsSection reports whether a section of an object is on a path: a
// listener, a rule by its name or as rule-N, a port by its name or number.
func pathContainsSection(v *snapshot.View, p *gateway.Path, ref api.Ref, section string) bool {
	for o := range p.Objects {
		if o.Ref == ref && o.Has(section, v.PortOf) {
			return true
		}
	}
	return false
}

// hasSection reports whether an object has a section of that name. An object that
// is not in the view may have any.
func hasSection(o snapshot.Object, section string) bool {
	if o, ok := o.(Reference); ok {
		return o.Kind != gateway.KindNamespace && o.Kind != gateway.KindGatewayClass
	}
	return snapshot.HasSection(o, section)
}
