package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

func TestKinds(t *testing.T) {
	tests := map[api.PolicyKind]struct{ known, cluster, route bool }{
		{Group: api.GatewayGroup, Kind: "GatewayClass"}:   {known: true, cluster: true},
		{Group: api.GatewayGroup, Kind: "Gateway"}:        {known: true},
		{Group: api.GatewayGroup, Kind: "ListenerSet"}:    {known: true},
		{Group: api.GatewayGroup, Kind: "ReferenceGrant"}: {known: true},
		{Group: api.GatewayGroup, Kind: "HTTPRoute"}:      {known: true, route: true},
		{Group: api.GatewayGroup, Kind: "GRPCRoute"}:      {known: true, route: true},
		{Group: api.GatewayGroup, Kind: "TLSRoute"}:       {known: true, route: true},
		{Group: api.GatewayGroup, Kind: "TCPRoute"}:       {known: true, route: true},
		{Group: api.GatewayGroup, Kind: "UDPRoute"}:       {known: true, route: true},
		{Kind: "Namespace"}:                               {known: true, cluster: true},
		{Kind: "Service"}:                                 {known: true},
		{Kind: "HTTPRoute"}:                               {},
		{Kind: "Pod"}:                                     {},
		{Group: api.GatewayGroup, Kind: "Namespace"}:      {},
		{Group: api.GatewayGroup, Kind: "XRoute"}:         {},
		{Group: "example.com", Kind: "HTTPRoute"}:         {},
		{Group: "example.com", Kind: "GatewayClass"}:      {},
	}
	for kind, want := range tests {
		assert.Equal(t, want.known, gateway.Known(kind), "%s is known", kind)
		assert.Equal(t, want.cluster, gateway.ClusterScoped(kind), "%s has no namespace", kind)
		assert.Equal(t, want.route, gateway.IsRoute(kind), "%s is a route", kind)
	}
}

func TestHasListener(t *testing.T) {
	g := listening(t, "{name: a, port: 80, protocol: HTTP}", "{name: b, port: 81, protocol: HTTP}")
	tests := map[string]struct {
		name string
		port int32
		want bool
	}{
		"a name":               {"b", 0, true},
		"no such name":         {"c", 0, false},
		"a port":               {"", 80, true},
		"no such port":         {"", 82, false},
		"a name and its port":  {"b", 81, true},
		"a name and another's": {"b", 80, false},
		"neither matches any":  {"", 0, true},
	}
	for name, test := range tests {
		assert.Equal(t, test.want, gateway.HasListener(g.Listeners, test.name, test.port), name)
	}
	assert.False(t, gateway.HasListener(nil, "", 0), "of none there is none")
}

func TestServices(t *testing.T) {
	s := service(t, "metadata: {name: cart, labels: {a: b}}\nspec: {ports: [{name: http, port: 80}, {name: admin, port: 9000}]}")
	assert.Equal(t, api.Ref{Kind: "Service", Namespace: "default", Name: "cart"}, s.Ref(), "from a file")
	assert.Equal(t, int32(9000), s.Port("admin"))
	assert.Equal(t, int32(0), s.Port("metrics"))
	assert.True(t, s.HasPort(80))
	assert.False(t, s.HasPort(81))
	assert.False(t, s.HasPort(0))
	unnamed := service(t, "metadata: {namespace: shop, name: cart}\nspec: {ports: [{port: 80}]}")
	assert.True(t, unnamed.HasPort(80))
	assert.Equal(t, int32(80), unnamed.Port(""), "the only port needs no name")
}

func TestGrants(t *testing.T) {
	g := gateway.FromReferenceGrant(read[gatewayv1.ReferenceGrant](t, `
metadata: {namespace: shop, name: g}
spec:
  from:
  - {group: example.com, kind: Paint, namespace: app}
  - {group: example.com, kind: Varnish, namespace: lab}
  to:
  - {group: "", kind: Service, name: cart}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute}
`))
	assert.Equal(t, api.Ref{Group: api.GatewayGroup, Kind: "ReferenceGrant", Namespace: "shop", Name: "g"}, g.Ref())
	paint, varnish := api.PolicyKind{Group: "example.com", Kind: "Paint"}, api.PolicyKind{Group: "example.com", Kind: "Varnish"}
	cart := api.Ref{Kind: "Service", Namespace: "shop", Name: "cart"}
	route := api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "shop", Name: "any"}
	tests := map[string]struct {
		from      api.PolicyKind
		namespace string
		to        api.Ref
		want      bool
	}{
		"a name that it allows":                          {paint, "app", cart, true},
		"the other line of from":                         {varnish, "lab", cart, true},
		"any name where it gives none":                   {paint, "app", route, true},
		"another name":                                   {paint, "app", api.Ref{Kind: "Service", Namespace: "shop", Name: "pay"}, false},
		"another namespace":                              {paint, "web", cart, false},
		"the kind of one line, the namespace of another": {paint, "lab", cart, false},
		"another kind":                                   {api.PolicyKind{Group: "example.com", Kind: "Ink"}, "app", cart, false},
		"another group":                                  {api.PolicyKind{Group: "example.org", Kind: "Paint"}, "app", cart, false},
		"a target of another kind":                       {paint, "app", api.Ref{Kind: "Secret", Namespace: "shop", Name: "cart"}, false},
		"a target of another group":                      {paint, "app", api.Ref{Group: "example.com", Kind: "HTTPRoute", Namespace: "shop", Name: "any"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, g.Allows(test.from, test.namespace, test.to))
		})
	}
	t.Run("an empty name in a file stands for all, too", func(t *testing.T) {
		g := gateway.FromReferenceGrant(read[gatewayv1.ReferenceGrant](t, "metadata: {name: g}\nspec: {from: [{group: example.com, kind: Paint, namespace: app}], to: [{group: '', kind: Service, name: ''}]}"))
		assert.Equal(t, "default", g.Namespace)
		assert.True(t, g.Allows(paint, "app", cart))
	})
}

func TestLabelsOf(t *testing.T) {
	const meta = "metadata: {namespace: app, name: obj, labels: {a: b}}\n"
	for name, object := range map[string]any{
		"GatewayClass": gateway.FromGatewayClass(read[gatewayv1.GatewayClass](t, meta)),
		"Gateway":      readGateway(t, meta),
		"ListenerSet":  listenerSet(t, meta),
		"Service":      service(t, meta),
		"Route":        httpRoute(t, meta),
	} {
		assert.Equal(t, labels.Set{"a": "b"}, gateway.LabelsOf(object), name)
	}
	assert.Equal(t, labels.Set{"a": "b", "kubernetes.io/metadata.name": "obj"}, gateway.LabelsOf(namespace(t, meta)))
	assert.Nil(t, gateway.LabelsOf(&gateway.Grant{}), "grants are selected by nothing")
	assert.Nil(t, gateway.LabelsOf(nil))
}

func TestRouteObjectDeepCopy(t *testing.T) {
	const text = "metadata: {name: r, labels: {a: b}}\nspec: {rules: []}"
	o := read[gateway.RouteObject](t, text)
	list := &gateway.RouteObjectList{Items: []gateway.RouteObject{*o}}
	one, all := o.DeepCopyObject().(*gateway.RouteObject), list.DeepCopyObject().(*gateway.RouteObjectList)
	assert.Equal(t, o, one)
	assert.Equal(t, list, all)
	for _, c := range []*gateway.RouteObject{one, &all.Items[0]} {
		c.Labels["a"], c.Spec[0] = "c", '['
	}
	assert.Equal(t, read[gateway.RouteObject](t, text), o)
}
