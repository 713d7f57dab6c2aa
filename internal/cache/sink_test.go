package cache

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/logbuffer"
)

func newLogBuffer() (logr.Logger, *logbuffer.Buffer) {
	b := &logbuffer.Buffer{}
	return b.At(0), b
}

func routeSink(s *snapshot.Store) *sink {
	b := builtinOf(gateway.KindOf(gateway.KindHTTPRoute))
	return &sink{
		store: s, kind: b.kind, decode: b.decode, target: objectTarget{store: s, kind: b.kind}, health: newHealthTracker("httproutes"),
		log: logr.Discard(), listed: func() {},
	}
}

func httpRoute(name string, hostnames ...gatewayv1.Hostname) *gateway.RouteObject {
	spec, err := json.Marshal(gatewayv1.HTTPRouteSpec{Hostnames: hostnames})
	if err != nil {
		panic(err)
	}
	return &gateway.RouteObject{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: name}, Spec: spec}
}

// storedRoutes returns the names of the routes in a store, with their hostnames.
func storedRoutes(s *snapshot.Store) map[string][]string {
	out := map[string][]string{}
	v, _ := s.View()
	for o := range v.Objects(gateway.KindOf(gateway.KindHTTPRoute)) {
		out[o.Ref().Key()] = o.(*gateway.Route).Hostnames
	}
	return out
}

func TestEventsReachTheStore(t *testing.T) {
	s := snapshot.New()
	k := routeSink(s)
	lists := 0
	k.listed = func() { lists++ }

	require.NoError(t, k.Replace([]any{httpRoute("a"), httpRoute("b", "b.example")}, "1"))
	assert.Equal(t, map[string][]string{"app/a": nil, "app/b": {"b.example"}}, storedRoutes(s))
	require.NoError(t, k.Add(httpRoute("c")))
	require.NoError(t, k.Update(httpRoute("a", "a.example")))
	require.NoError(t, k.Delete(httpRoute("b")))
	assert.Equal(t, map[string][]string{"app/a": {"a.example"}, "app/c": nil}, storedRoutes(s))

	streamed, err := k.Transformer()(httpRoute("d"))
	require.NoError(t, err)
	require.NoError(t, k.Replace([]any{streamed, httpRoute("a")}, "2"), "a streamed list is decoded already")
	assert.Equal(t, map[string][]string{"app/a": nil, "app/d": nil}, storedRoutes(s))
	assert.Equal(t, 2, lists)
	require.NoError(t, k.Resync())
	assert.Equal(t, uint64(2), k.health.get().Lists)
}

func TestClosedSinkDropsEvents(t *testing.T) {
	s := snapshot.New()
	k := routeSink(s)
	require.NoError(t, k.Add(httpRoute("a")))
	k.listed = func() { t.Error("listed after close") }
	s.Watch(func([]snapshot.Observation) { t.Error("seen after close") })
	k.close()

	require.NoError(t, k.Add(httpRoute("b")))
	require.NoError(t, k.Delete(httpRoute("a")))
	require.NoError(t, k.Replace(nil, "1"))
	assert.Equal(t, map[string][]string{"app/a": nil}, storedRoutes(s))
}

func TestUnreadableObjectIsRemovedAndNotLogged(t *testing.T) {
	s := snapshot.New()
	log, lines := newLogBuffer()
	k := routeSink(s)
	k.log = log
	odd := httpRoute("b")
	odd.Spec = []byte(`{"hostnames": "secret"}`)
	require.NoError(t, k.Replace([]any{httpRoute("a"), odd}, "1"))
	assert.Equal(t, map[string][]string{"app/a": nil}, storedRoutes(s))
	odd.Name = "a"
	require.NoError(t, k.Update(odd))
	assert.Empty(t, storedRoutes(s))
	assert.Contains(t, lines.String(), `"cannot read object; treating it as absent" "error"="spec: `)
	assert.Contains(t, lines.String(), `"object"="app/a"`)
	assert.NotContains(t, lines.String(), "secret")
}

func TestSinkRejectsOtherTypes(t *testing.T) {
	s := snapshot.New()
	k := routeSink(s)
	require.NoError(t, k.Replace([]any{"text"}, "1"))
	assert.Empty(t, storedRoutes(s))
	assert.ErrorContains(t, k.Delete("text"), "name the deleted object: ")
	require.NoError(t, k.Delete(cache.DeletedFinalStateUnknown{Key: "app/a"}))
}

func TestDecodersRejectOtherTypes(t *testing.T) {
	_, err := builtinOf(api.PolicyKind{Kind: "Service"}).decode(&corev1.Namespace{})
	require.EqualError(t, err, "got *v1.Namespace, want *v1.Service")
	_, err = builtinOf(gateway.KindOf(gateway.KindTCPRoute)).decode(&corev1.Namespace{})
	require.EqualError(t, err, "got *v1.Namespace, want *gateway.RouteObject")
	_, err = decodeProfile(&corev1.Namespace{})
	require.EqualError(t, err, "got *v1.Namespace, want *unstructured.Unstructured")

	auth := policykind.BuiltinKind(authKind)
	_, err = policyDecoder(auth)(&corev1.Namespace{})
	require.EqualError(t, err, "got *v1.Namespace, want *unstructured.Unstructured")

	_, err = policyDecoder(nil)(policy("AuthPolicy", "app", "a"))
	assert.ErrorContains(t, err, "decode it: panic: ", "a panic of the reader is an error")
}

func TestExemptNamespaceIsIgnored(t *testing.T) {
	s := snapshot.New()
	k := routeSink(s)
	k.target = objectTarget{store: s, kind: gateway.KindOf(gateway.KindHTTPRoute), exempt: "app"}
	other := httpRoute("b")
	other.Namespace = "other"
	require.NoError(t, k.Replace([]any{httpRoute("a"), other}, "1"))
	require.NoError(t, k.Add(httpRoute("c")))
	assert.Equal(t, map[string][]string{"other/b": nil}, storedRoutes(s))
}

func routeAt(name string, version int) *gateway.RouteObject {
	o := httpRoute(name)
	o.ResourceVersion = strconv.Itoa(version)
	return o
}
