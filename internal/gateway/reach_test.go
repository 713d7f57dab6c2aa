package gateway

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
)

// routeList has the routes of one gateway.
type routeList []*Route

func (l routeList) RoutesAt(_ api.Ref, hostname, _ string) iter.Seq[*Route] {
	return slices.Values(slices.DeleteFunc(slices.Clone(l), func(r *Route) bool {
		return hostname == "" && len(r.Hostnames) > 0 || hostname != "" && !slices.Contains(r.Hostnames, hostname)
	}))
}

func (l routeList) RoutesOf(api.Ref) iter.Seq[*Route] { return slices.Values(l) }

func (routeList) NamespaceLabels(string) labels.Set { return nil }

// reachRoute returns an HTTPRoute on a listener of the gateway of these tests, "" for all.
func reachRoute(name, listener string, created int64, matches string, hostnames ...string) *Route {
	return &Route{
		Kind: KindHTTPRoute, Namespace: "app", Name: name, Hostnames: hostnames, Created: created,
		Parents: []Parent{{Kind: KindGateway, Namespace: "infra", Name: "g", Section: listener}},
		Rules:   []Rule{{matches: []byte(matches)}},
	}
}

// Whether requests reach a route is decided by the first route with its match, and counts
// as reached where it is not known.
func TestReach(t *testing.T) {
	const cart, regex = `[{"path":{"type":"PathPrefix","value":"/cart"}}]`, `[{"path":{"type":"RegularExpression","value":"/cart(/.*)?"}}]`
	for name, test := range map[string]struct {
		own, other *Route
		reached    bool
		isolated   bool
	}{
		"an older route has the match":            {own: reachRoute("own", "all", 2, cart), other: reachRoute("other", "all", 1, cart)},
		"a route as old, first by name, has it":   {own: reachRoute("own", "all", 1, cart), other: reachRoute("a", "all", 1, cart)},
		"a newer route has it":                    {own: reachRoute("own", "all", 1, cart), other: reachRoute("other", "all", 2, cart), reached: true},
		"neither route has a time":                {own: reachRoute("own", "all", Newest, cart), other: reachRoute("a", "all", Newest, cart), reached: true},
		"an older one has a longer path":          {own: reachRoute("own", "all", 2, cart), other: reachRoute("other", "all", 1, `[{"path":{"type":"PathPrefix","value":"/cart/x"}}]`), reached: true},
		"an older one has it for another host":    {own: reachRoute("own", "all", 2, cart), other: reachRoute("other", "all", 1, cart, "a.example.com"), reached: true},
		"both have the same regular expression":   {own: reachRoute("own", "all", 2, regex), other: reachRoute("other", "all", 1, regex)},
		"one of them has a regular expression":    {own: reachRoute("own", "all", 2, cart), other: reachRoute("other", "all", 1, regex), reached: true},
		"another listener has its hostname":       {own: reachRoute("own", "all", 2, cart, "shop.example.com"), reached: true, isolated: true},
		"it is on that listener, too":             {own: reachRoute("own", "", 2, cart, "shop.example.com"), reached: true},
		"an older one is on that listener":        {own: reachRoute("own", "all", 2, cart, "shop.example.com"), other: reachRoute("other", "shop", 1, cart), reached: true, isolated: true},
		"one with its hostname is, too":           {own: reachRoute("own", "all", 2, cart, "shop.example.com"), other: reachRoute("other", "shop", 1, cart, "shop.example.com")},
		"no request can meet it at this listener": {own: reachRoute("own", "shop", 2, cart), other: reachRoute("other", "shop", 1, cart, "shop.example.com")},
		"its own hostname is more specific":       {own: reachRoute("own", "shop", 2, cart, "shop.example.com"), other: reachRoute("other", "shop", 1, cart), reached: true},
	} {
		t.Run(name, func(t *testing.T) {
			listener := func(name, hostname string) Listener {
				return Listener{Name: name, Port: 80, Protocol: "HTTP", Hostname: hostname, Kinds: []string{KindHTTPRoute}, Namespaces: NamespaceRule{All: true}}
			}
			g := &Gateway{Namespace: "infra", Name: "g", Listeners: []Listener{listener("all", ""), listener("shop", "shop.example.com")}}
			routes := routeList{test.own}
			if test.other != nil {
				routes = append(routes, test.other)
			}
			router := NewRouter(OwnListeners(g), routes, Reading{})
			got := router.ReachAnywhere(test.own, -1)
			assert.Equal(t, [2]bool{test.reached, test.isolated}, [2]bool{got.Reached, got.Isolated})
			if !got.Reached || got.Isolated {
				assert.True(t, router.MayBeUnreached(test.own))
			}
		})
	}
}

// The first of listeners with one port and hostname takes all connections, and one with
// another protocol on the port takes none.
func TestConflictOf(t *testing.T) {
	listener := func(name, protocol, hostname string) Listener {
		return Listener{Name: name, Port: 80, Protocol: protocol, Hostname: hostname}
	}
	g := &Gateway{Namespace: "infra", Name: "g", Listeners: []Listener{
		listener("a", "HTTP", ""), listener("b", "HTTP", "b.example.com"), listener("again", "HTTP", "b.example.com"), listener("tls", "HTTPS", "c.example.com"),
	}}
	all := OwnListeners(g)
	router := NewRouter(all, routeList{}, Reading{})
	var got []string
	for i := range all {
		with := ""
		if by := router.ConflictOf(&all[i]); by != nil {
			with = by.Listener.Name
		}
		got = append(got, with)
	}
	assert.Equal(t, []string{"", "", "b", "a"}, got)
}

// countedRoutes counts the routes that a router looks at.
type countedRoutes struct {
	routeList

	looked *int
}

func (c countedRoutes) RoutesAt(parent api.Ref, hostname, segment string) iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		for r := range c.routeList.RoutesAt(parent, hostname, segment) {
			if *c.looked++; !yield(r) {
				return
			}
		}
	}
}

// Rivals are looked for until one precedes the route, and once however often that is asked.
func TestRivalsAreLookedForUntilOnePrecedes(t *testing.T) {
	const cart = `[{"path":{"type":"PathPrefix","value":"/cart"}}]`
	own := reachRoute("own", "", 1000, cart)
	routes := routeList{own}
	for i := range 1000 {
		routes = append(routes, reachRoute("other", "", int64(i), cart))
	}
	looked := 0
	g := &Gateway{Namespace: "infra", Name: "g", Listeners: []Listener{
		{Name: "all", Port: 80, Protocol: "HTTP", Kinds: []string{KindHTTPRoute}, Namespaces: NamespaceRule{All: true}},
	}}
	router := NewRouter(OwnListeners(g), countedRoutes{routes, &looked}, Reading{})
	for range 100 {
		assert.True(t, router.MayBeUnreached(own))
	}
	assert.LessOrEqual(t, looked, 2, "itself, and the first that precedes it")
}
