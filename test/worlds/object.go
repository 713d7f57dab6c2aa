package worlds

import (
	"fmt"
	"hash/fnv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// Object is an object as an API server returns it.
type Object = map[string]any

// Kinds of the objects.
var (
	namespaceKind = api.PolicyKind{Kind: gateway.KindNamespace}
	classKind     = api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass}
	gatewayKind   = api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGateway}
	setKind       = api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindListenerSet}
	routeKind     = api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindHTTPRoute}
	authKind      = api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}
	limitsKind    = api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}
)

const (
	infra     = "infra" // the namespace of the gateways and their policies
	className = "shared"
)

// parse returns an object of JSON with the operands of a format.
func parse(format string, operands ...any) Object {
	var out Object
	if err := utiljson.Unmarshal(fmt.Appendf(nil, format, operands...), &out); err != nil {
		panic(fmt.Sprintf("%s: %v", fmt.Sprintf(format, operands...), err))
	}
	return out
}

// object returns an object with the metadata that an API server sets. Objects of
// a kind differ in i; every tenth was created in the same second.
func object(kind api.PolicyKind, namespace, name string, i int, spec Object) Object {
	meta := Object{
		"name": name, "uid": uidOf(kind, i), "resourceVersion": fmt.Sprint(1000 + i), "generation": 1,
		"creationTimestamp": fmt.Sprintf("2026-01-%02dT%02d:%02d:00Z", 1+i/10/1440%28, i/10/60%24, i/10%60),
	}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	version := "v1"
	if kind.Group != "" {
		version = kind.Group + "/v1"
	}
	return Object{"apiVersion": version, "kind": kind.Kind, "metadata": meta, "spec": spec}
}

func uidOf(kind api.PolicyKind, i int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(kind.String())) // never fails
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", h.Sum32(), i)
}

// Spec returns the spec of an object.
func Spec(o Object) Object { return o["spec"].(Object) }

// Meta returns the metadata of an object.
func Meta(o Object) Object { return o["metadata"].(Object) }

// KindOf returns the kind of an object.
func KindOf(o Object) api.PolicyKind {
	version, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	group, _, found := strings.Cut(version, "/")
	if !found {
		group = "" // the core group
	}
	return api.PolicyKind{Group: group, Kind: kind}
}

// RefOf returns the reference of an object.
func RefOf(o Object) api.Ref {
	kind := KindOf(o)
	namespace, _ := Meta(o)["namespace"].(string)
	name, _ := Meta(o)["name"].(string)
	return api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name}
}

// Resource returns the plural name of a kind, as in its CRD.
func Resource(kind api.PolicyKind) string {
	name := strings.ToLower(kind.Kind)
	switch {
	case strings.HasSuffix(name, "policy"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "s"):
		return name + "es"
	default:
		return name + "s"
	}
}

func reference(kind api.PolicyKind, name string) Object {
	return Object{"group": kind.Group, "kind": kind.Kind, "name": name}
}

// in adds a namespace to a reference.
func in(namespace string, reference Object) Object {
	reference["namespace"] = namespace
	return reference
}

// on returns a policy with a target.
func on(target Object, kind api.PolicyKind, namespace, name string, i int, spec Object) Object {
	spec["targetRef"] = target
	return object(kind, namespace, name, i, spec)
}

// list returns n items.
func list[T any](n int, item func(i int) T) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}
