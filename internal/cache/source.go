package cache

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// Names of sources other than the kinds of Gateway API.
const (
	sourceDefinitions = "customresourcedefinitions"
	sourceNamespaces  = "namespaces"
	sourceServices    = "services"
	sourceProfiles    = "policyprofiles"
	sourcePolicies    = "policy kinds"
)

// profilesDefinition is the name of the CustomResourceDefinition of PolicyProfile.
const profilesDefinition = sourceProfiles + "." + api.Group

// definitionsResource is the resource of CustomResourceDefinitions.
var definitionsResource = apiextensionsv1.SchemeGroupVersion.WithResource(sourceDefinitions)

// Sources are the sources of a store that a Watcher feeds, for snapshot.New. The store
// is ready after all are listed. "policy kinds" are those in the first list of
// CustomResourceDefinitions, read with the first list of PolicyProfiles.
var Sources = sources()

func sources() []string {
	out := []string{sourceDefinitions, sourceNamespaces, sourceServices}
	for i := range fixedKinds {
		out = append(out, fixedKinds[i].resource)
	}
	return append(out, sourceProfiles, sourcePolicies)
}

// decoder converts an object from the API server to one of the store.
type decoder func(runtime.Object) (snapshot.Object, error)

// builtin is a kind that attachments are made of: one of Gateway API, or Namespace or
// Service; or a kind of constraints.
type builtin struct {
	// resource is the plural name, and the name of the source.
	resource string
	kind     api.PolicyKind
	// versions are the supported versions, the preferred one first. All have the same
	// shape.
	versions []string
	// example and list are nil for constraints, which are read undecoded.
	example, list runtime.Object
	decode        decoder
}

// coreKinds are the builtin kinds that need no CustomResourceDefinition.
var coreKinds = []builtin{
	{
		resource: sourceNamespaces, kind: api.PolicyKind{Kind: gateway.KindNamespace}, versions: []string{"v1"},
		example: &corev1.Namespace{}, list: &corev1.NamespaceList{}, decode: typedDecoder(gateway.FromNamespace),
	},
	{
		resource: sourceServices, kind: api.PolicyKind{Kind: gateway.KindService}, versions: []string{"v1"},
		example: &corev1.Service{}, list: &corev1.ServiceList{}, decode: typedDecoder(gateway.FromService),
	},
}

// gatewayKinds are the kinds of Gateway API.
var gatewayKinds = []builtin{
	gatewayAPI(gateway.KindGatewayClass, &gatewayv1.GatewayClass{}, &gatewayv1.GatewayClassList{}, typedDecoder(gateway.FromGatewayClass)),
	gatewayAPI(gateway.KindGateway, &gatewayv1.Gateway{}, &gatewayv1.GatewayList{}, typedDecoder(gateway.FromGateway)),
	gatewayAPI(gateway.KindListenerSet, &gatewayv1.ListenerSet{}, &gatewayv1.ListenerSetList{}, typedDecoder(gateway.FromListenerSet)),
	gatewayAPI(gateway.KindXListenerSet, &gatewayv1.ListenerSet{}, &gatewayv1.ListenerSetList{}, typedDecoder(gateway.FromXListenerSet)),
	gatewayAPI(gateway.KindReferenceGrant, &gatewayv1.ReferenceGrant{}, &gatewayv1.ReferenceGrantList{}, typedDecoder(gateway.FromReferenceGrant)),
	routes(gateway.KindHTTPRoute),
	routes(gateway.KindGRPCRoute),
	routes(gateway.KindTLSRoute),
	routes(gateway.KindTCPRoute),
	routes(gateway.KindUDPRoute),
}

func gatewayAPI(kind string, example, list runtime.Object, decode decoder) builtin {
	of := snapshot.FixedKind(gateway.KindOf(kind))
	return builtin{resource: of.Resource, kind: gateway.KindOf(kind), versions: of.Versions, example: example, list: list, decode: decode}
}

func routes(kind string) builtin {
	return gatewayAPI(kind, &gateway.RouteObject{}, &gateway.RouteObjectList{}, decoderOf(func(o *gateway.RouteObject) (snapshot.Object, error) {
		return gateway.FromRoute(kind, o)
	}))
}

// fixedKinds are the builtin kinds that have a CustomResourceDefinition.
var fixedKinds = append(slices.Clone(gatewayKinds), constraintKinds...)

// builtinOf returns the builtin kind of that name, or nil.
func builtinOf(kind api.PolicyKind) *builtin {
	is := func(b builtin) bool { return b.kind == kind }
	if i := slices.IndexFunc(fixedKinds, is); i >= 0 {
		return &fixedKinds[i]
	}
	if i := slices.IndexFunc(coreKinds, is); i >= 0 {
		return &coreKinds[i]
	}
	return nil
}

// fixedKindOf returns the builtin kind of a definition, or nil.
func fixedKindOf(d *snapshot.Definition) *builtin {
	if !d.Fixed {
		return nil
	}
	return builtinOf(d.Kind)
}

// decoderOf decodes objects of one type.
func decoderOf[T any](decode func(*T) (snapshot.Object, error)) decoder {
	return func(obj runtime.Object) (snapshot.Object, error) {
		t, ok := any(obj).(*T)
		if !ok {
			return nil, fmt.Errorf("got %T, want %T", obj, t)
		}
		return decode(t)
	}
}

func typedDecoder[T any, O snapshot.Object](from func(*T) O) decoder {
	return decoderOf(func(t *T) (snapshot.Object, error) { return from(t), nil })
}

// decodeSpec decodes an object but for its spec into head, and returns the spec. misread is
// set if that has unknown or invalid fields.
func decodeSpec[S any](kind string, u *unstructured.Unstructured, head any) (spec S, misread, err error) {
	rest := maps.Clone(u.Object)
	delete(rest, "spec")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, head); err != nil {
		return spec, nil, fmt.Errorf("read the %s: %w", kind, err)
	}
	var body struct {
		Spec S `json:"spec"`
	}
	misread = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(map[string]any{"spec": u.Object["spec"]}, &body, true)
	if misread != nil {
		misread = fmt.Errorf("%w; correct it, or update Overrule if it is older than the CustomResourceDefinition", misread)
	}
	return body.Spec, misread, nil
}

// policyDecoder decodes objects of a policy kind. The cluster may contain policies that
// were never evaluated: a panic of the reader becomes an error, or the server would
// crash at each start.
func policyDecoder(k *policykind.Kind) decoder {
	return decoderOf(func(u *unstructured.Unstructured) (_ snapshot.Object, err error) {
		defer background.RecoverError(&err, "decode it")
		return k.Read(u.Object, merge.Newest).Pack(), nil
	})
}

// labelDecoder decodes the labels of objects of a kind.
func labelDecoder(kind api.PolicyKind) decoder {
	return func(obj runtime.Object) (snapshot.Object, error) {
		o, err := meta.Accessor(obj)
		if err != nil {
			return nil, fmt.Errorf("got %T: %w", obj, err)
		}
		return gateway.FromMetadata(kind, o), nil
	}
}

// coercingDecoder decodes objects of a policy kind as the API server will with the
// schema of the kind (policykind.Schema.Coerce). For a moment after a definition has
// changed, the API server may still use the previous schema, and no event reports when
// that ends.
func coercingDecoder(k *policykind.Kind) decoder {
	read := policyDecoder(k)
	return decoderOf(func(u *unstructured.Unstructured) (_ snapshot.Object, err error) {
		defer background.RecoverError(&err, "decode it with its schema")
		k.Schema().Coerce(u.Object)
		return read(u)
	})
}
