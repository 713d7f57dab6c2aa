package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/tables"
)

var requestFiles = []string{"-f", "testdata/requests.yaml"}

// at describes where a request goes at one gateway, as "Gateway edge#http shop#cart: A, B"
// with the codes of the assumptions, or without a rule if nothing serves it.
func at(a api.RequestAt) string {
	var path, codes []string
	for _, e := range a.Path {
		switch {
		case e.Kind == "GatewayClass", e.Kind == "Gateway" && len(a.Path) > 2:
		case e.Section != "" || !a.Served && e.Kind != "GatewayClass":
			path = append(path, e.Name+"#"+e.Section)
		}
	}
	for _, as := range a.Assumptions {
		codes = append(codes, string(as.Code))
	}
	out := strings.Join(path, " ")
	if len(codes) > 0 {
		out += ": " + strings.Join(codes, ", ")
	}
	return out
}

func places(r *api.ServedRequest) []string {
	var out []string
	for _, a := range r.At {
		out = append(out, at(a))
	}
	return out
}

// Where requests go, and what is assumed, by Gateway API's specification.
func TestEffectiveOfARequest(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Args, Want []string
	}](t, "testdata/tables/requests.yaml") {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"effective", "explain"} {
				got := run(t, "", append(append([]string{command, "-o", "json"}, requestFiles...), append([]string{"--request"}, c.Args...)...)...)
				require.NotEqual(t, exitError, got.code, got.stderr)
				var request *api.ServedRequest
				if command == "explain" {
					requireSchema(t, api.KindExplanationList, got)
					request = decode[api.ExplanationList](t, got.stdout).Request
				} else {
					requireSchema(t, api.KindEffectivePolicyList, got)
					request = decode[api.EffectivePolicyList](t, got.stdout).Request
				}
				assert.Equal(t, c.Want, places(request))
				assert.Equal(t, request.Served, got.code == exitOK)
				for _, a := range request.At {
					assert.Equal(t, a.Served, a.Message == "")
				}
			}
		})
	}
}

// Only the policies on the paths of the rule that serves the request are shown, and those
// of kinds whose paths end at its listener.
func TestEffectiveOfARequestShowsItsPaths(t *testing.T) {
	show := func(args ...string) []string {
		return effectiveItems(t, append(append([]string{"--gateway", "infra/edge", "--request"}, args...), requestFiles...)...)
	}
	assert.Equal(t, []string{"ClientTrafficPolicy edge#shop", "AuthPolicy shop#cart"}, show("https://shop.example.com/cart"))
	assert.Equal(t, []string{"AuthPolicy shop#cart"}, show("http://shop.example.com/cart"), "another listener")
	assert.Equal(t, []string{"ClientTrafficPolicy edge#shop"}, show("https://shop.example.com/cart", "--kind", "ClientTrafficPolicy"))
	assert.Equal(t, []string{"ClientTrafficPolicy edge#http none"}, show("http://shop.example.com/", "--kind", "ClientTrafficPolicy", "--without"))
	assert.Equal(t, []string{"ClientTrafficPolicy edge#http none", "AuthPolicy shop#all"},
		show("http://shop.example.com/", "--kind", "ClientTrafficPolicy", "--kind", "AuthPolicy.kuadrant.io", "--all-paths"))
	for client, want := range map[string]string{"web": "HTTPRouteRule web/consumer#everything", "other": "HTTPRouteRule shop/producer#items", "guest": "HTTPRouteRule shop/producer#items"} {
		got := run(t, "", append([]string{"effective", "--request", "http://cart.shop/items", "--client-namespace", client, "-o", "json"}, requestFiles...)...)
		items := decode[api.EffectivePolicyList](t, got.stdout).Items
		require.Len(t, items, 1)
		assert.Equal(t, want, items[0].Path[len(items[0].Path)-1].String())
		onlyClients := map[string]string{"web": "web", "guest": "guest"}[client] // who has a route or a policy of its own
		assert.Equal(t, onlyClients, items[0].Path[0].Client)
	}
	got := run(t, "", append([]string{"effective", "--request", "http://other.org/"}, requestFiles...)...)
	assert.Equal(t, exitNegative, got.code)
	assert.Empty(t, got.stderr)
	assert.NotContains(t, got.stdout, "AuthPolicy")
}

// A request that nothing serves: how far it comes, and what to do.
func TestRequestIsNotServed(t *testing.T) {
	for request, want := range tables.Read[map[string]string](t, "testdata/tables/requests-not-served.yaml") {
		words := strings.Fields(strings.ReplaceAll(request, "-M", "--client-namespace"))
		got := run(t, "", append(append([]string{"effective", "--request"}, words...), requestFiles...)...)
		assert.Equal(t, exitNegative, got.code, got.stderr)
		assert.Contains(t, got.stdout, want, request)
	}
	got := run(t, loneNamespace, "effective", "-f", "-", "--request", "http://a.org")
	assert.Equal(t, result{exitNegative, "GET http://a.org/: not served\n  there is no Gateway; for a request in a mesh, set --client-namespace\n", ""}, got)
	got = run(t, gatewayManifest("[]"), "effective", "-f", "-", "--request", "http://a.org")
	assert.Contains(t, got.stdout, "the gateway has no listeners")
	got = run(t, gatewayManifest("[{name: http, port: 80, protocol: HTTP}, {name: tcp, port: 81, protocol: TCP}]"), "effective", "-f", "-", "--request", "tcp://:81")
	assert.Contains(t, got.stdout, "no route is attached to listener tcp; attach one, or check its parentRefs")
}

func gatewayManifest(listeners string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: infra, name: g}\nspec: {gatewayClassName: c, listeners: " + listeners + "}\n"
}

func routeManifest(name, section, more string) string {
	return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: infra, name: " + name + "}\n" +
		"spec: {parentRefs: [{name: g, sectionName: " + section + "}], " + more + "}\n"
}

// What the answer depends on, where implementations differ.
func TestRequestAssumptions(t *testing.T) {
	one := gatewayManifest("[{name: a, port: 80, protocol: HTTP}]")
	for name, c := range tables.Read[map[string]struct{ Manifests, Request, Want string }](t, "testdata/tables/request-assumptions.yaml") {
		t.Run(name, func(t *testing.T) {
			got := run(t, c.Manifests, "effective", "-f", "-", "--request", c.Request)
			require.NotEqual(t, exitError, got.code, got.stderr)
			assert.Contains(t, got.stdout, c.Want)
		})
	}
	got := run(t, one+routeManifest("r", "a", ""), "effective", "-f", "-", "--request", "http://a.org/x?a=1&b=2", "-H", "X: 1", "-H", "Y: 1")
	assert.NotContains(t, got.stdout, "assumed")
}

// explain lists the other rules in their order, with the criterion.
func TestExplainRequestListsCandidates(t *testing.T) {
	got := run(t, "", append([]string{"explain", "--gateway", "infra/edge", "--request", "https://shop.example.com/cart/x", "-o", "json"}, requestFiles...)...)
	require.Equal(t, exitOK, got.code, got.stderr)
	var all []string
	for _, c := range decode[api.ExplanationList](t, got.stdout).Request.At[0].Candidates {
		all = append(all, strings.TrimSpace(c.Rule.Name+"#"+c.Rule.Section+" "+string(c.After)))
	}
	assert.Equal(t, []string{
		"shop#cart", "shop#second EarlierRule", "aged#rule-1 OlderRoute", "newer#rule-1 OlderRoute", "shop#all LongerPath", "newer#rule-2 RegularExpression",
	}, all)
	got = run(t, "", append([]string{"effective", "--request", "https://shop.example.com/cart/x", "-o", "yaml"}, requestFiles...)...)
	var list api.EffectivePolicyList
	require.NoError(t, yaml.UnmarshalStrict([]byte(got.stdout), &list))
	assert.Empty(t, list.Request.At[0].Candidates, "only explain has candidates")
}

// Flags that contradict each other, and values that cannot be read.
func TestRequestErrors(t *testing.T) {
	for args, want := range tables.Read[map[string]string](t, "testdata/tables/request-errors.yaml") {
		got := run(t, "", append(append([]string{"effective"}, strings.Fields(args)...), requestFiles...)...)
		assert.Equal(t, result{exitError, "", "error: " + want + "\n"}, got, args)
	}
	for args, want := range map[string]string{
		"--request http://a --gateway infra/nope":      "Gateway infra/nope not found",
		"--request http://a --gateway edge":            "Gateway default/edge not found",
		"--request http://x.y --client-namespace web":  "Service y/x not found",
		"--request http://cart --client-namespace web": "Service web/cart not found",
	} {
		got := run(t, "", append(append([]string{"effective"}, strings.Fields(args)...), requestFiles...)...)
		assert.Equal(t, result{exitNegative, "", "error: " + want + "\n"}, got, args)
	}
	got := run(t, "", append([]string{"explain", "--request", "http://a", "httproute/shop", "rule"}, requestFiles...)...)
	assert.Equal(t, result{exitError, "", "error: invalid --request: must not be used with an object (httproute/shop rule); usage: kubectl overrule explain KIND/NAME [RULE]\n"}, got)
}

// A request that cannot be read is an error before the cluster is read.
func TestRequestOnCluster(t *testing.T) {
	got := run(t, "", "effective", "--request", "http://*")
	assert.Contains(t, got.stderr, "without wildcards")
	got = runOnCluster(t, "explain", "--request", "http://toystore.example.com/toys/1", "-o", "json")
	require.Equal(t, exitOK, got.code, got.stderr)
	list := decode[api.ExplanationList](t, got.stdout)
	assert.Equal(t, []string{"edge#http toystore#toys"}, places(list.Request))
	assert.NotEmpty(t, list.Items)
}

// A request can come in by a listener of a ListenerSet, and policies whose paths end at a
// Service hold for requests to it.
func TestRequestThroughSetsAndServices(t *testing.T) {
	for name, c := range map[string]struct{ args, want []string }{
		"a listener set": {[]string{"http://x.org:81/", "--kind", "TimeoutPolicy"}, []string{"TimeoutPolicy toys#main"}},
		"a service":      {[]string{"http://toys.app/", "--client-namespace", "x"}, []string{"AuthorizationPolicy toys#"}},
		"a consumer":     {[]string{"http://toys.app/", "--client-namespace", "shop"}, []string{"MeshPolicy buyer#rule-1", "AuthorizationPolicy toys#"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, effectiveItems(t, append([]string{"-f", "testdata/shapes.yaml", "--request"}, c.args...)...))
		})
	}
	got := run(t, "", "effective", "-f", "testdata/shapes.yaml", "--request", "http://x.org:81/", "-o", "json")
	assert.Equal(t, []string{"more#extra toys#main"}, places(decode[api.EffectivePolicyList](t, got.stdout).Request)[:1])
}
