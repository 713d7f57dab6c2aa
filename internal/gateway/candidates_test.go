package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// candidateTexts are candidates as "route/rule criterion".
func candidateTexts(all []gateway.Candidate) []string {
	var out []string
	for _, c := range all {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s/%d %s", c.Route.Name, c.Rule+1, c.After)))
	}
	return out
}

// The criteria of Gateway API's specification, each decided by one pair of rules.
func TestAnswerNamesCriterion(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Routes, Request string
		Headers, Want   []string
	}](t, "testdata/tables/criteria.yaml") {
		t.Run(name, func(t *testing.T) {
			r, _ := routerOf(t, "http: HTTP 80", c.Routes)
			assert.Equal(t, c.Want, candidateTexts(r.Answer(request(t, c.Request, c.Headers...)).Candidates))
		})
	}
}

func TestAttachedRoutesOfAnAnswer(t *testing.T) {
	r, _ := routerOf(t, "a: HTTP 80 *.example.com\nb: HTTP 81", "none 1: /x\nwild 1 *.com: /x\nexact 1 shop.example.com: /x\nelse@b 1: /x")
	var got []string
	for _, on := range r.Answer(request(t, "http://shop.example.com/")).Attached {
		got = append(got, on.Route.Name+" "+on.Hostname)
	}
	assert.Equal(t, []string{"exact shop.example.com", "none *.example.com", "wild *.example.com"}, got)
	assert.Empty(t, r.Answer(request(t, "https://shop.example.com/")).Attached, "no listener")
}

func TestAnswerFindsUnreadExpressions(t *testing.T) {
	r, _ := routerOf(t, "http: HTTP 80", "a 1 a.org: ~/x(?=y) | /\nb 1 b.org: ~/x.*")
	assert.True(t, r.Answer(request(t, "http://a.org/")).Unread)
	assert.False(t, r.Answer(request(t, "http://b.org/")).Unread)
	assert.True(t, r.Answer(request(t, "http://b.org/xy")).Regex())
	assert.False(t, r.Answer(request(t, "http://a.org/")).Regex())
}

func TestMatchTexts(t *testing.T) {
	r, _ := routerOf(t, "http: HTTP 80\ntls: TLS 443", "a 1 a.org: GET /x X=1 Z=~[0-9] ?q=2\ngrpc 1 g.org: Shop.Buy | .Buy Y=1 | .\ntls 1: /")
	for request, want := range map[*gateway.Request]string{
		request(t, "http://a.org/x?q=2", "X: 1", "z: 3"): "GET PathPrefix /x with header X=1 and header Z~[0-9] and query parameter q=2",
		request(t, "grpc://g.org/Shop/Buy"):              "Exact /Shop/Buy",
		request(t, "grpc://g.org/Bank/Buy", "y: 1"):      "Exact /*/Buy with header Y=1",
		request(t, "grpc://g.org/Bank/Sell"):             "any request",
		request(t, "tls://g.org:443"):                    "",
		request(t, "http://c.org"):                       "",
	} {
		assert.Equal(t, want, r.Answer(request).MatchText(), request)
	}
}

// In a mesh the routes of the client's namespace replace those of the Service's, their
// hostnames mean nothing, and the kinds of routes are not merged.
func TestAnswerInMesh(t *testing.T) {
	meshRoute := func(kind, namespace, name, rest string) *gateway.Route {
		return route(t, kind, "metadata: {namespace: "+namespace+", name: "+name+"}\nspec:\n  "+rest)
	}
	const parent = "parentRefs: [{group: '', kind: Service, namespace: shop, name: cart"
	all := []*gateway.Route{
		meshRoute(gateway.KindHTTPRoute, "shop", "producer", parent+"}]\n  hostnames: [a.org]\n  rules: [{matches: [{path: {type: PathPrefix, value: /items}}]}]"),
		meshRoute(gateway.KindHTTPRoute, "shop", "admin", parent+", port: 81}]\n  rules: [{}]"),
		meshRoute(gateway.KindHTTPRoute, "web", "consumer", parent+", port: 80}]\n  rules: [{matches: [{path: {type: Exact, value: /items}}]}]"),
		meshRoute(gateway.KindGRPCRoute, "rpc", "calls", parent+"}]\n  rules: [{matches: [{method: {service: Shop}}]}]"),
		meshRoute(gateway.KindHTTPRoute, "rpc", "all", parent+"}]\n  rules: [{}]"),
		meshRoute(gateway.KindTCPRoute, "raw", "tcp", parent+"}]\n  rules: [{}]"),
	}
	service := &gateway.Service{Namespace: "shop", Name: "cart", Ports: []gateway.Port{{Number: 80}, {Number: 81}}}
	for _, c := range []struct{ request, client, want string }{
		{"http://cart.shop/items/1", "other", "producer"},
		{"http://cart.shop/items/1", "shop", "producer"},
		{"http://cart.shop/x", "other", "none of 1"},
		{"http://cart.shop:81/x", "other", "admin"},
		{"http://cart.shop:81/items", "other", "producer"},
		{"http://cart.shop/items", "web", "consumer"},
		{"http://cart.shop/items/1", "web", "none of 1"},
		{"http://cart.shop:81/items", "web", "producer"}, // no consumer route is on the port
		{"grpc://cart.shop/Shop/Buy", "rpc", "calls"},
		{"http://cart.shop/x", "rpc", "none of 2"},
		{"http://cart.shop/x", "raw", "tcp"},
	} {
		a := gateway.AnswerInMesh(request(t, c.request), service, c.client, slices.Values(all), gateway.Reading{})
		got := fmt.Sprintf("none of %d", len(a.Attached))
		if a.Route != nil {
			got = a.Route.Name
		}
		assert.Equal(t, c.want, got, c)
		assert.Equal(t, c.client != "other" && c.client != "shop" && c.want != "producer", a.Consumer, c)
		for _, reading := range []gateway.Reading{{}, {Regex: gateway.RegexFirst}, {Regex: gateway.RegexAfterExact}} { // the router of the Service decides in the same way
			q := request(t, c.request)
			if c.client != "other" && c.client != "shop" {
				q.Client = c.client
			}
			served := gateway.NewMeshRouter(service, []string{"raw", "rpc", "web"}, all, reading).Route(q)
			assert.Equal(t, a.Route, served.Route, c)
			assert.Equal(t, a.Rule, served.Rule, c)
		}
	}
	a := gateway.AnswerInMesh(request(t, "http://cart.shop/items"), service, "other", slices.Values(all[2:3]), gateway.Reading{})
	assert.Nil(t, a.Route)
	assert.Empty(t, a.Attached)
}

func TestHostHeaderReplacesHost(t *testing.T) {
	q := request(t, "https://192.0.2.1/", "host: Shop.Example.com:8443")
	assert.Equal(t, []string{"shop.example.com", "192.0.2.1"}, []string{q.Host, q.ServerName})
	assert.Equal(t, "2001:db8::1", request(t, "http://h/", "Host: [2001:db8::1]").Host)
	for text, want := range map[string]string{"Host: *.a": "without wildcards", "Host:": "no host", "X: a\r\nb": "must be a name and a value"} {
		_, err := gateway.ParseRequest("http://h", []string{text})
		assert.ErrorContains(t, err, want, text)
	}
	_, err := gateway.ParseRequest("tcp://:1", []string{"X: a"})
	assert.ErrorContains(t, err, "has no headers")
}

func TestRequestMethods(t *testing.T) {
	for text, want := range map[string]string{"get http://h": "upper case: GET", "G@T http://h": `"G@T" is not a method`, "http://a b": "is not a method"} {
		_, err := gateway.ParseRequest(text, nil)
		assert.ErrorContains(t, err, want, text)
	}
	assert.Equal(t, "PURGE http://[::1]/", request(t, "PURGE http://[::1]").String())
	assert.Zero(t, request(t, "tls://h").Port)
}

// No text panics, and a request that is read names a host or a port.
func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		"GET https://shop.example.com/cart?x=1", "tcp://:5432", "tls://h", "grpc://h/A/B", "http://[::1%25eth0]:80/%2F", "http://h/..//./?&=&a=%zz", "x://", "GET", "http://h:+1",
	} {
		f.Add(seed, "X-Team: a")
	}
	f.Add("https://h", "Host: [::1]:1")
	f.Fuzz(func(t *testing.T, text, header string) {
		q, err := gateway.ParseRequest(text, []string{header})
		if err != nil {
			return
		}
		if q.Host == "" && q.Port == 0 || q.String() == "" {
			t.Errorf("%q is read as %+v", text, q)
		}
	})
}
