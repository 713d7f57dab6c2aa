package constraint

import (
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// PathOf returns the variable path of expressions (cel.Schemas): the elements that the
// path has.
func PathOf(p *gateway.Path, w Lookup) map[string]any {
	out := make(map[string]any)
	if g := p.Gateway; g != nil {
		out["gatewayClass"] = map[string]any{"name": g.Class}
		gw := objectOf(g.Ref(), g.Labels, w)
		gw["className"] = g.Class
		out["gateway"] = gw
	}
	if s := p.Set; s != nil {
		out["listenerSet"] = objectOf(s.Ref(), s.Labels, w)
	}
	if l := p.Listener; l != nil {
		out["listener"] = map[string]any{"name": l.Name, "port": int64(l.Port), "protocol": l.Protocol, "hostname": l.Hostname}
	}
	if s := p.Service; s != nil {
		service := objectOf(s.Ref(), s.Labels, w)
		withPort(service, p.Port)
		out["service"] = service
	}
	if p.Client != "" {
		out["client"] = p.Client
	}
	if r := p.Route; r != nil {
		route := objectOf(r.Ref(), r.Labels, w)
		route["group"], route["kind"], route["hostnames"] = api.GatewayGroup, r.Kind, texts(r.Hostnames)
		out["route"] = route
		if p.Rule >= 0 {
			out["rule"] = ruleOf(p)
		}
	}
	if b := backendOf(p); b != nil {
		out["backend"] = b
	}
	return out
}

// objectOf returns an object's namespace, name and labels, and the labels of its
// namespace.
func objectOf(ref api.Ref, set labels.Set, w Lookup) map[string]any {
	return map[string]any{
		"namespace": ref.Namespace, "name": ref.Name,
		"labels": labelsOf(set), "namespaceLabels": labelsOf(w.NamespaceLabels(ref.Namespace)),
	}
}

func ruleOf(p *gateway.Path) map[string]any {
	out := map[string]any{"name": p.Route.RuleName(p.Rule), "index": int64(p.Rule)}
	if p.Member != "" {
		out["member"] = p.Member
	}
	return out
}

// backendOf returns the backend of the path, or its virtual target, nil if it has neither.
func backendOf(p *gateway.Path) map[string]any {
	switch {
	case p.Backend != nil:
		out := RefOf(p.Backend.Object)
		withPort(out, p.Backend.Port)
		return out
	case p.Virtual != nil:
		return RefOf(*p.Virtual)
	default:
		return nil
	}
}

func withPort(object map[string]any, port int32) {
	if port != 0 {
		object["port"] = int64(port)
	}
}

// RefOf returns a reference for expressions.
func RefOf(r api.Ref) map[string]any {
	return map[string]any{"group": r.Group, "kind": r.Kind, "namespace": r.Namespace, "name": r.Name}
}

func labelsOf(set labels.Set) map[string]any {
	out := make(map[string]any, len(set))
	for k, v := range set {
		out[k] = v
	}
	return out
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
