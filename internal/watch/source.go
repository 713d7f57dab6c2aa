package watch

import (
	"fmt"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
)

// Names of sources that are no kind of Gateway API.
const (
	sourceDefinitions = "customresourcedefinitions"
	sourceNamespaces  = "namespaces"
	sourcePolicies    = "policy kinds"
)

// Sources are the sources of a store that a Watcher feeds, for store.New. All
// are listed before the store is ready; "policy kinds" are those that the
// first list of CustomResourceDefinitions has.
var Sources = []string{
	sourceDefinitions, sourceNamespaces,
	"gatewayclasses", "gateways", "httproutes", "grpcroutes",
	sourcePolicies,
}

// decoder makes a value of the store of an object from the API server.
type decoder func(runtime.Object) (store.Object, error)

// builtin is a kind of Gateway API, or Namespace: a kind that is part of the
// hierarchy.
type builtin struct {
	// resource is its plural, and the name of the source.
	resource string
	kind     api.PolicyKind
	example  runtime.Object
	decode   decoder
}

// gatewayVersion is the version in which Gateway API's kinds are read.
const gatewayVersion = "v1"

var namespaces = builtin{
	resource: sourceNamespaces, kind: api.PolicyKind{Kind: hierarchy.KindNamespace},
	example: &corev1.Namespace{}, decode: typed(hierarchy.FromNamespace),
}

// gatewayKinds are the kinds of Gateway API that the hierarchy is made of.
var gatewayKinds = []builtin{
	{
		resource: "gatewayclasses", kind: gatewayKind(hierarchy.KindGatewayClass),
		example: &gatewayv1.GatewayClass{}, decode: typed(hierarchy.FromGatewayClass),
	},
	{
		resource: "gateways", kind: gatewayKind(hierarchy.KindGateway),
		example: &gatewayv1.Gateway{}, decode: typed(hierarchy.FromGateway),
	},
	{
		resource: "httproutes", kind: gatewayKind(hierarchy.KindHTTPRoute),
		example: &gatewayv1.HTTPRoute{}, decode: typed(hierarchy.FromHTTPRoute),
	},
	{
		resource: "grpcroutes", kind: gatewayKind(hierarchy.KindGRPCRoute),
		example: &gatewayv1.GRPCRoute{}, decode: typed(hierarchy.FromGRPCRoute),
	},
}

func gatewayKind(kind string) api.PolicyKind {
	return api.PolicyKind{Group: api.GatewayGroup, Kind: kind}
}

// definition is the name of the kind's CustomResourceDefinition.
func (b *builtin) definition() string { return b.resource + "." + b.kind.Group }

func typed[T any, O store.Object](from func(*T) O) decoder {
	return func(obj runtime.Object) (store.Object, error) {
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
	return func(obj runtime.Object) (out store.Object, err error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("got a %T in place of a %T", obj, u)
		}
		defer recovered(&err)
		return k.Read(u.Object, merge.Newest), nil
	}
}

func recovered(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("read it: panic: %v\n%s", cause, debug.Stack())
	}
}
