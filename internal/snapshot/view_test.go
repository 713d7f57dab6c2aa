package snapshot_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

func routeRef(name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: name}
}

func TestZeroViewIsEmpty(t *testing.T) {
	v := &snapshot.View{}
	assert.Nil(t, v.Get(routeRef("r")))
	assert.Nil(t, v.Gateway("infra", "edge"))
	assert.Nil(t, v.Kind(paintKind))
	assert.Zero(t, v.Count(routeKind))
	assert.Empty(t, names(v.Gateways()))
	assert.Empty(t, names(v.RoutesOf(gatewayRef("edge"))))
	same := v.With(snapshot.Delete(routeRef("r")))
	assert.Zero(t, same.Count(routeKind), "what is not there can be deleted")
}

func TestWithDoesNotModifyView(t *testing.T) {
	k := paint(t, "Paint")
	one := (&snapshot.View{}).With(puts(newGateway(t, "edge", "istio"), route(t, "r", "edge"), policy(t, k, "p", "r"))...)
	two := one.With(
		snapshot.Put(newGateway(t, "edge", "envoy")), snapshot.Put(route(t, "s", "edge")),
		snapshot.Delete(routeRef("r")), snapshot.Delete(policy(t, k, "p").Ref()),
	)
	assert.Equal(t, []string{"HTTPRoute app/r"}, names(one.RoutesOf(gatewayRef("edge"))))
	assert.Equal(t, []string{"HTTPRoute app/s"}, names(two.RoutesOf(gatewayRef("edge"))))
	assert.Equal(t, []string{"Gateway infra/edge"}, names(one.GatewaysOf("istio")))
	assert.Empty(t, names(two.GatewaysOf("istio")))
	assert.Equal(t, []string{"Paint app/p"}, on(one, routeRef("r"), paintKind))
	assert.Empty(t, on(two, routeRef("r"), paintKind))
	assert.Equal(t, "istio", one.Gateway("infra", "edge").Class)
	assert.Equal(t, "envoy", two.Gateway("infra", "edge").Class)
}

func TestRoutesWithSameName(t *testing.T) {
	other := decode(t, routeKind, "metadata: {namespace: zoo, name: r}\nspec: {parentRefs: [{namespace: infra, name: edge}]}")
	v := (&snapshot.View{}).With(puts(route(t, "r", "edge"), other)...)
	assert.Equal(t, []string{"HTTPRoute app/r", "HTTPRoute zoo/r"}, names(v.RoutesOf(gatewayRef("edge"))))
}

// A route with paths of several first segments is there once, or by each of them.
func TestRoutesByFirstSegment(t *testing.T) {
	of := func(name, hostname string, paths ...string) snapshot.Object {
		var rules []string
		for _, p := range paths {
			rules = append(rules, "{matches: [{path: {value: "+p+"}}]}")
		}
		return decode(t, routeKind, fmt.Sprintf("metadata: {namespace: app, name: %s}\nspec: {parentRefs: [{namespace: infra, name: edge}], hostnames: [%s], rules: [%s]}",
			name, hostname, strings.Join(rules, ", ")))
	}
	v := (&snapshot.View{}).With(puts(of("a", "x.com", "/c/1", "/b", "/c/2"), of("b", "x.com", "/", "/e/2"), of("c", "x.com", "/d"), of("d", "x.company", "/a"))...)
	for segment, want := range map[string][]string{
		"b": {"HTTPRoute app/a"}, "c": {"HTTPRoute app/a"}, "": {"HTTPRoute app/b"}, "e": {"HTTPRoute app/b"}, "f": nil,
		gateway.AllSegments: {"HTTPRoute app/b", "HTTPRoute app/a", "HTTPRoute app/c"}, // those with the first segment of all come first
	} {
		assert.Equal(t, want, names(v.RoutesAt(gatewayRef("edge"), "x.com", segment)), segment)
	}
}

// A name that is a prefix of another one is distinct from it.
func TestIndexKeysAreUnambiguous(t *testing.T) {
	k, other := paint(t, "Paint"), paint(t, "PaintJob")
	v := (&snapshot.View{}).With(puts(
		newGateway(t, "edge", "c"), newGateway(t, "edge2", "c2"), route(t, "r", "edge"), route(t, "r2", "edge2"),
		policy(t, k, "p", "r"), policy(t, k, "p2", "r2"), policy(t, other, "j", "r"),
	)...).WithKinds([]*policykind.Kind{other, k})
	assert.Equal(t, []string{"HTTPRoute app/r"}, names(v.RoutesOf(gatewayRef("edge"))))
	assert.Equal(t, []string{"Gateway infra/edge"}, names(v.GatewaysOf("c")))
	assert.Equal(t, []string{"Paint app/p"}, on(v, routeRef("r"), paintKind))
	assert.Equal(t, []string{"Paint app/p", "Paint app/p2"}, names(v.Policies(paintKind)))
	assert.Equal(t, 1, v.Count(other.Ref()))
	assert.Equal(t, []string{"PaintJob app/j"}, on(v, routeRef("r"), other.Ref()))
}

func TestNamespaceLabels(t *testing.T) {
	v := (&snapshot.View{}).With(snapshot.Put(decode(t, api.PolicyKind{Kind: "Namespace"}, "metadata: {name: app, labels: {team: red}}")))
	assert.Equal(t, labels.Set{"team": "red", "kubernetes.io/metadata.name": "app"}, v.NamespaceLabels("app"))
	assert.Equal(t, labels.Set{"kubernetes.io/metadata.name": "other"}, v.NamespaceLabels("other"), "one that is not known")
}

func TestWithKindsRemovesPolicies(t *testing.T) {
	k, other := paint(t, "Paint"), paint(t, "Other")
	v := (&snapshot.View{}).With(puts(policy(t, k, "p", "r"), policy(t, other, "o", "r"))...).WithKinds([]*policykind.Kind{k, other})
	assert.Equal(t, []*policykind.Kind{other, k}, v.Kinds(), "sorted")
	assert.Same(t, k, v.Kind(paintKind))
	less := v.WithKinds([]*policykind.Kind{k})
	assert.Nil(t, less.Kind(other.Ref()))
	assert.Empty(t, on(less, routeRef("r"), other.Ref()))
	assert.Zero(t, less.Count(other.Ref()))
	assert.Equal(t, 1, less.Count(paintKind))
	assert.Equal(t, 1, v.Count(other.Ref()), "the original stays")
}

// Readers of a view and hypothetical changes do not interfere. Run with -race.
func TestViewsAreSafeForConcurrentUse(t *testing.T) {
	k := paint(t, "Paint")
	var objects []snapshot.Object
	for i := range 50 {
		name := fmt.Sprintf("r%d", i)
		objects = append(objects, route(t, name, "edge"), policy(t, k, name, name))
	}
	v := (&snapshot.View{}).With(puts(append(objects, newGateway(t, "edge", "istio"))...)...)
	more := route(t, "more", "edge")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				next := v.With(snapshot.Put(more), snapshot.Delete(routeRef(fmt.Sprintf("r%d", i))))
				assert.Equal(t, 50, next.Count(routeKind))
				assert.Nil(t, next.Get(routeRef(fmt.Sprintf("r%d", i))))
			}
		})
		wg.Go(func() {
			for range 50 {
				assert.Len(t, names(v.RoutesOf(gatewayRef("edge"))), 50)
				assert.NotNil(t, v.Get(routeRef("r7")))
			}
		})
	}
	wg.Wait()
}

func TestPopulated(t *testing.T) {
	k, other, last := paint(t, "Paint"), paint(t, "PaintJob"), paint(t, "Zebra")
	v := (&snapshot.View{}).WithKinds([]*policykind.Kind{last, other, k})
	assert.Empty(t, v.Populated())
	v = v.With(puts(policy(t, other, "p", "r"), policy(t, last, "p", "r"))...)
	assert.Equal(t, []*policykind.Kind{other, last}, v.Populated(), "a name that begins like another is another")
	v = v.With(snapshot.Delete(policy(t, last, "p").Ref()))
	assert.Equal(t, []*policykind.Kind{other}, v.Populated())
	assert.Empty(t, (&snapshot.View{}).Populated())
}

// AllIn deletes everything in a namespace, and nothing else.
func TestAllIn(t *testing.T) {
	k := paint(t, "Paint")
	v := (&snapshot.View{}).WithKinds([]*policykind.Kind{k}).With(puts(
		newGateway(t, "edge", "istio"), newGateway(t, "inner", "istio"), route(t, "r", "edge"), policy(t, k, "p", "r"),
		decode(t, gatewayKind, "metadata: {namespace: app2, name: edge}\nspec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}"),
	)...)
	in := func(namespace string) []string {
		var out []string
		for _, c := range v.AllIn(namespace) {
			assert.Nil(t, c.Object, "they are taken out")
			out = append(out, c.Ref.String())
		}
		slices.Sort(out)
		return out
	}
	assert.Equal(t, []string{"Gateway infra/edge", "Gateway infra/inner"}, in("infra"))
	assert.Equal(t, []string{"HTTPRoute app/r", "Paint app/p"}, in("app"))
	assert.Equal(t, []string{"Gateway app2/edge"}, in("app2"))
	assert.Empty(t, in("none"))
	without := v.With(v.AllIn("app")...)
	assert.Empty(t, names(without.RoutesOf(gatewayRef("edge"))))
	assert.Nil(t, without.Get(routeRef("r")))
	assert.NotNil(t, without.Gateway("infra", "edge"))
}

// Cluster-scoped objects are in no namespace, not even in one with an empty name.
func TestAllInSkipsClusterScoped(t *testing.T) {
	class := decode(t, api.PolicyKind{Group: api.GatewayGroup, Kind: "GatewayClass"}, "metadata: {name: istio}")
	v := (&snapshot.View{}).With(puts(class, newGateway(t, "edge", "istio"))...)
	assert.Empty(t, v.AllIn("istio"))
	assert.Len(t, v.AllIn("infra"), 1)
}
