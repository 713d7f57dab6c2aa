package cache

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Names of sources that are no kind of Gateway API.
const (
	sourceDefinitions = "customresourcedefinitions"
	sourceNamespaces  = "namespaces"
	sourceServices    = "services"
	sourceProfiles    = "policyprofiles"
	sourcePolicies    = "policy kinds"
)

// Sources are the sources of a store that a Watcher feeds, for store.New. All
// are listed before the store is ready; "policy kinds" are those that the
// first list of CustomResourceDefinitions has, as the first list of
// PolicyProfiles reads them.
var Sources = sources()

func sources() []string {
	out := []string{sourceDefinitions, sourceNamespaces, sourceServices}
	for i := range gatewayKinds {
		out = append(out, gatewayKinds[i].resource)
	}
	for i := range constraintKinds {
		out = append(out, constraintKinds[i].resource)
	}
	return append(out, sourceProfiles, sourcePolicies)
}

// decoder makes a value of the store of an object from the API server.
type decoder func(runtime.Object) (snapshot.Object, error)

// builtin is a kind that is part of the hierarchy: one of Gateway API, or of
// Kubernetes' core.
type builtin struct {
	// resource is its plural, and the name of the source.
	resource string
	kind     api.PolicyKind
	// versions are those that are read, the best first: they have the same
	// shape.
	versions []string
	example  runtime.Object
	list     runtime.Object
	decode   decoder
}

var (
	namespaces = builtin{
		resource: sourceNamespaces, kind: api.PolicyKind{Kind: gateway.KindNamespace}, versions: []string{"v1"},
		example: &corev1.Namespace{}, list: &corev1.NamespaceList{}, decode: typed(gateway.FromNamespace),
	}
	services = builtin{
		resource: sourceServices, kind: api.PolicyKind{Kind: gateway.KindService}, versions: []string{"v1"},
		example: &corev1.Service{}, list: &corev1.ServiceList{}, decode: typed(gateway.FromService),
	}
)

// gatewayKinds are the kinds of Gateway API that the hierarchy is made of.
var gatewayKinds = []builtin{
	{
		resource: "gatewayclasses", kind: gatewayKind(gateway.KindGatewayClass), versions: []string{"v1"},
		example: &gatewayv1.GatewayClass{}, list: &gatewayv1.GatewayClassList{}, decode: typed(gateway.FromGatewayClass),
	},
	{
		resource: "gateways", kind: gatewayKind(gateway.KindGateway), versions: []string{"v1"},
		example: &gatewayv1.Gateway{}, list: &gatewayv1.GatewayList{}, decode: typed(gateway.FromGateway),
	},
	{
		resource: "listenersets", kind: gatewayKind(gateway.KindListenerSet), versions: []string{"v1"},
		example: &gatewayv1.ListenerSet{}, list: &gatewayv1.ListenerSetList{}, decode: typed(gateway.FromListenerSet),
	},
	{
		resource: "xlistenersets", kind: gatewayKind(gateway.KindXListenerSet), versions: []string{"v1alpha1"},
		example: &gatewayv1.ListenerSet{}, list: &gatewayv1.ListenerSetList{}, decode: typed(gateway.FromXListenerSet),
	},
	{
		resource: "referencegrants", kind: gatewayKind(gateway.KindReferenceGrant), versions: []string{"v1", "v1beta1"},
		example: &gatewayv1.ReferenceGrant{}, list: &gatewayv1.ReferenceGrantList{}, decode: typed(gateway.FromReferenceGrant),
	},
	routes("httproutes", gateway.KindHTTPRoute, "v1"),
	routes("grpcroutes", gateway.KindGRPCRoute, "v1"),
	routes("tlsroutes", gateway.KindTLSRoute, "v1", "v1alpha3", "v1alpha2"),
	routes("tcproutes", gateway.KindTCPRoute, "v1", "v1alpha2"),
	routes("udproutes", gateway.KindUDPRoute, "v1", "v1alpha2"),
}

func routes(resource, kind string, versions ...string) builtin {
	return builtin{
		resource: resource, kind: gatewayKind(kind), versions: versions,
		example: &gateway.RouteObject{}, list: &gateway.RouteObjectList{},
		decode: func(obj runtime.Object) (snapshot.Object, error) {
			o, ok := obj.(*gateway.RouteObject)
			if !ok {
				return nil, fmt.Errorf("got a %T in place of a %T", obj, o)
			}
			return gateway.FromRoute(kind, o)
		},
	}
}

// hierarchyKind returns the kind of the hierarchy of that name, or nil.
func hierarchyKind(kind api.PolicyKind) *builtin {
	switch kind {
	case namespaces.kind:
		return &namespaces
	case services.kind:
		return &services
	}
	return gatewayBy(func(b *builtin) bool { return b.kind == kind })
}

func gatewayBy(is func(*builtin) bool) *builtin {
	for i := range gatewayKinds {
		if b := &gatewayKinds[i]; is(b) {
			return b
		}
	}
	return nil
}

func gatewayKind(kind string) api.PolicyKind {
	return gateway.KindOf(kind)
}

// definition is the name of the kind's CustomResourceDefinition.
func (b *builtin) definition() string { return b.resource + "." + b.kind.Group }

func typed[T any, O snapshot.Object](from func(*T) O) decoder {
	return func(obj runtime.Object) (snapshot.Object, error) {
		t, ok := any(obj).(*T)
		if !ok {
			return nil, fmt.Errorf("got a %T in place of a %T", obj, t)
		}
		return from(t), nil
	}
}

// policies reads objects of a policy kind. A policy that no one judged may be
// in the cluster already: one that makes the reader panic is an error, or it
// would bring the server down each time that it starts.
func policies(k *policykind.Kind) decoder {
	return func(obj runtime.Object) (out snapshot.Object, err error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("got a %T in place of a %T", obj, u)
		}
		defer background.Recovered(&err, "read it")
		return k.Read(u.Object, merge.Newest).Pack(), nil
	}
}

// coerced reads objects of a policy kind as the API server will by the kind's own
// schema (policykind.Schema.Coerce): for a moment after a definition has changed it
// may still read them by the one before, and no event comes when it does not any
// more.
func coerced(k *policykind.Kind, was *policykind.Schema) decoder {
	read := policies(k)
	return func(obj runtime.Object) (out snapshot.Object, err error) {
		defer background.Recovered(&err, "read it by its schema")
		if u, ok := obj.(*unstructured.Unstructured); ok {
			k.Schema().Coerce(u.Object, was)
		}
		return read(obj)
	}
}
