package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
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
	for name, c := range map[string]struct {
		args, want []string
	}{
		"the listener by SNI, the longest prefix": {
			[]string{"GET https://shop.example.com/cart?x=1", "--gateway", "infra/edge"}, []string{"edge#shop shop#cart"},
		},
		"an exact path, with regular expressions that could be first": {
			[]string{"https://shop.example.com/cart/checkout", "--gateway", "infra/edge"}, []string{"edge#shop shop#checkout: RegularExpressions"},
		},
		"a method":                       {[]string{"DELETE http://shop.example.com/cart?q=new", "-H", "X-Team: beta", "--gateway", "infra/edge"}, []string{"edge#http shop#writes"}},
		"a header in another case":       {[]string{"http://shop.example.com/cart?q=new", "-H", "x-TEAM:beta", "--gateway", "infra/edge"}, []string{"edge#http shop#beta"}},
		"a query parameter":              {[]string{"http://shop.example.com/cart?q=new", "--gateway", "infra/edge"}, []string{"edge#http shop#search"}},
		"a header that is sent twice":    {[]string{"http://shop.example.com/cart", "-H", "X-Team: beta", "-H", "x-team: b", "--gateway", "infra/edge"}, []string{"edge#http shop#cart: RepeatedValues"}},
		"a parameter that is sent twice": {[]string{"http://shop.example.com/cart?q=x&q=new", "--gateway", "infra/edge"}, []string{"edge#http shop#cart: RepeatedValues"}},
		"all gateways, those as asked first": {
			[]string{"https://shop.example.com/"}, []string{"edge#shop shop#all", "inner#plain shop#all: TLSTerminated"},
		},
		"a port that is mapped":     {[]string{"http://shop.example.com:9000/", "--gateway", "inner", "-n", "infra"}, []string{"inner#plain shop#all: Port"}},
		"the port of the listener":  {[]string{"http://shop.example.com/", "--port", "8080"}, []string{"inner#plain shop#all"}},
		"upper case, a dot, a port": {[]string{"HTTP://SHOP.example.COM.:80/cart", "--gateway", "infra/edge"}, []string{"edge#http shop#cart"}},
		"a path in upper case":      {[]string{"http://shop.example.com/CART", "--gateway", "infra/edge"}, []string{"edge#http shop#all"}},
		"double slashes":            {[]string{"http://shop.example.com//cart", "--gateway", "infra/edge"}, []string{"edge#http shop#all: PathUnchanged"}},
		"dots":                      {[]string{"http://shop.example.com/cart/../x", "--gateway", "infra/edge"}, []string{"edge#http shop#cart: PathUnchanged"}},
		"an escaped slash":          {[]string{"http://shop.example.com/cart%2Fx", "--gateway", "infra/edge"}, []string{"edge#http shop#all: PathUnchanged"}},
		"an escaped letter":         {[]string{"http://shop.example.com/%63art", "--gateway", "infra/edge"}, []string{"edge#http shop#all: PathUnchanged"}},
		"the Host header":           {[]string{"http://192.0.2.1/cart", "-H", "Host: shop.example.com", "--gateway", "infra/edge"}, []string{"edge#http shop#cart"}},
		"a server name that is not the host": {
			[]string{"https://a.example.com/wide", "--sni", "b.example.com", "--gateway", "infra/edge"}, []string{"edge#any: ServerName"},
		},
		"TCP by port":                                  {[]string{"tcp://:5432"}, []string{"edge#db db#db"}},
		"TLS that is passed through":                   {[]string{"tls://vault.example.com:8443"}, []string{"edge#vault vault#rule-1"}},
		"a request through TLS that is passed through": {[]string{"https://vault.example.com:8443/x"}, []string{"edge#vault vault#rule-1"}},
		"TLS to any port":                              {[]string{"tls://vault.example.com"}, []string{"edge#vault vault#rule-1", "edge#any"}},
		"TLS by another SNI":                           {[]string{"tls://x.example.com:8443", "--sni", "vault.example.com"}, []string{"edge#vault vault#rule-1"}},
		"gRPC":                                         {[]string{"grpc://grpc.example.com/pkg.Shop/Buy"}, []string{"edge#http calls#method: RouteKinds"}},
		"no rule":                                      {[]string{"https://x.example.com/x"}, []string{"edge#any"}},
		"no route":                                     {[]string{"http://other.org/"}, []string{"edge#http"}},
		"no listener on the port":                      {[]string{"udp://:54"}, []string{"edge#", "inner#"}},
		"no listener for the host":                     {[]string{"http://other.org/", "--gateway", "infra/inner"}, []string{"inner#"}},
		"producer routes":                              {[]string{"http://cart.shop/items", "--client-namespace", "other"}, []string{"cart#80 producer#items"}},
		"consumer routes": {
			[]string{"http://cart.shop.svc.cluster.local/items", "--client-namespace", "web"}, []string{"cart#80 consumer#everything: ConsumerRoutes"},
		},
		"the namespace of the client": {[]string{"http://cart/items", "--client-namespace", "shop"}, []string{"cart#80 producer#items"}},
		"no rule in the mesh":         {[]string{"http://cart.shop/x", "--client-namespace", "other"}, []string{"cart#80"}},
		"a route on one port only":    {[]string{"http://cart.shop/items", "--port", "81", "--client-namespace", "other"}, []string{"cart#81"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"effective", "explain"} {
				got := run(t, "", append(append([]string{command, "-o", "json"}, requestFiles...), append([]string{"--request"}, c.args...)...)...)
				require.NotEqual(t, exitError, got.code, got.stderr)
				var request *api.ServedRequest
				if command == "explain" {
					requireSchema(t, api.KindExplanationList, got)
					request = decode[api.ExplanationList](t, got.stdout).Request
				} else {
					requireSchema(t, api.KindEffectivePolicyList, got)
					request = decode[api.EffectivePolicyList](t, got.stdout).Request
				}
				assert.Equal(t, c.want, places(request))
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
	for request, want := range map[string]string{
		"http://other.org/":           "not by Gateway infra/edge#http: no route for host other.org is attached to listener http; add the host to the hostnames of a route, or check its parentRefs and the allowedRoutes of the listener",
		"https://x.example.com/":      "not by Gateway infra/edge#any: no rule of HTTPRoute app/wide matches the request; change its path, method, headers or query, or add a rule",
		"https://a.example.com/wide":  "HTTPRoute app/wide#rule-1 is not used: its hostname *.example.com is less specific than a.example.com",
		"tls://shop.example.com:443":  "not by Gateway infra/edge#shop: listener shop terminates TLS, and its routes are chosen by HTTP requests; set one, such as 'GET https://shop.example.com/'",
		"tls://other.org:443":         "no listener accepts host other.org; set another host, or add a listener for it: there is shop (HTTPS port 443, hostname shop.example.com), any (HTTPS port 443, hostname *.example.com)",
		"tls://other.org":             "no listener accepts TLS for host other.org on any port; set another host",
		"udp://:54":                   "not by Gateway infra/inner: no listener accepts UDP on port 54; set another port, or add a listener: there is plain (HTTP port 8080, hostname shop.example.com)",
		"http://x.org --port 81":      "no listener accepts HTTP on port 81 for host x.org; set another --port or host, or add a listener",
		"http://cart.shop:82 -M web":  "not by Service shop/cart#82: Service shop/cart has no port 82; set --port to one of 80, 81",
		"http://cart.shop:81 -M x":    "no route has Service shop/cart as a parent for clients in namespace x: the mesh forwards the request by its own rules; attach a route to the Service",
		"http://cart.shop/nope -M x":  "no rule of HTTPRoute shop/producer matches the request, and the mesh rejects it; change its path, method, headers or query, or add a rule",
		"https://[2001:db8::1]:443/x": "no route for host 2001:db8::1 is attached to listener http",
	} {
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
	two := gatewayManifest("[{name: a, port: 80, protocol: HTTP, hostname: a.org}, {name: b, port: 80, protocol: HTTP}]")
	one := gatewayManifest("[{name: a, port: 80, protocol: HTTP}]")
	regex := "rules: [{matches: [{path: {type: RegularExpression, value: '/x.*'}}]}, {matches: [{path: {type: PathPrefix, value: /xy}}]}]"
	for name, c := range map[string]struct{ manifests, request, want string }{
		"listeners that share their routes": {
			two + routeManifest("r", "b", "hostnames: [a.org]"), "http://a.org/",
			"assumed (ListenersIsolated): the gateway isolates its listeners, so that only listener a takes the request; without that, HTTPRoute infra/r#rule-1 serves it at listener b",
		},
		"the order of regular expressions": {
			one + routeManifest("r", "a", regex), "http://a.org/xy",
			"assumed (RegularExpressions): regular expressions of paths come after all other paths; if they come first in the implementation, HTTPRoute infra/r#rule-1 serves it at listener a",
		},
		"the syntax of regular expressions": {one + routeManifest("r", "a", regex), "http://a.org/xz", "assumed (RegularExpressions): a regular expression matches a whole value, in the syntax of RE2; the implementation may differ"},
		"a regular expression of another syntax": {
			one + routeManifest("r", "a", "rules: [{matches: [{path: {type: RegularExpression, value: '/x(?=y)'}}]}, {}]"), "http://a.org/xy",
			"assumed (RegularExpressions): a regular expression of a rule on the hostname is not in the syntax of RE2, and matches nothing here",
		},
		"routes without a creation time": {
			one + routeManifest("r", "a", "") + routeManifest("s", "a", ""), "http://a.org/",
			"assumed (CreationTime): HTTPRoute infra/r has no creation time and is compared by name: on a cluster, the older one of it and HTTPRoute infra/s is first",
		},
		"a path that is normalized to the same rule": {one + routeManifest("r", "a", ""), "http://a.org//x", "assumed (PathUnchanged): path //x is matched as it is sent; if the gateway normalizes it to /x, the same rule serves it"},
		"a path that is normalized to another rule": {
			one + routeManifest("r", "a", "rules: [{}, {matches: [{path: {type: PathPrefix, value: /admin}}]}]"), "http://a.org/x/../admin/",
			"if the gateway normalizes it to /admin/, HTTPRoute infra/r#rule-2 serves it at listener a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, c.manifests, "effective", "-f", "-", "--request", c.request)
			require.NotEqual(t, exitError, got.code, got.stderr)
			assert.Contains(t, got.stdout, c.want)
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
	const usage = "; usage: kubectl overrule effective [KIND/NAME]"
	for args, want := range map[string]string{
		"--request http://a httproute/shop":      "invalid --request: must not be used with an object (httproute/shop)" + usage,
		"-H a:b":                                 "invalid --header: must be used with --request" + usage,
		"--gateway infra/edge":                   "invalid --gateway: must be used with --request" + usage,
		"--port 80":                              "invalid --port: must be used with --request" + usage,
		"--sni a":                                "invalid --sni: must be used with --request" + usage,
		"--client-namespace a httproute/shop":    "invalid --client-namespace: must be used with --request" + usage,
		"--request http://a --gateway=":          "invalid --gateway: must not be empty" + usage,
		"--request http://a --client-namespace=": "invalid --client-namespace: must not be empty" + usage,
		"--request=":                             `invalid request "": the URL has no scheme: must be such as 'GET https://shop.example.com/cart'`,
		"--request shop.example.com/cart":        `invalid request "shop.example.com/cart": the URL has no scheme: must be such as 'GET https://shop.example.com/cart'`,
		"--request http://%zz":                   `invalid request "http://%zz": invalid URL escape "%zz"`,
		"--request http://shop.*.com":            `invalid request "http://shop.*.com": host "shop.*.com" must be a DNS name or an IP address of a request, without wildcards`,
		"--request http://a..b":                  `invalid request "http://a..b": host "a..b" must be a DNS name or an IP address of a request, without wildcards`,
		"--request http://a:70000":               `invalid request "http://a:70000": port "70000" must be a number from 1 to 65535`,
		"--request https:///x":                   `invalid request "https:///x": the URL has no host`,
		"--request http://a/%2":                  `invalid request "http://a/%2": invalid URL escape "%2"`,
		"--request http://a -H a":                `invalid header "a": must be a name and a value such as 'X-Team: a'`,
		"--request tcp://:1 -H a:b":              `invalid header "a:b": a TCP connection has no headers`,
		"--request http://a --port 0":            "invalid --port 0: must be in 1-65535",
		"--request http://a --port 65536":        "invalid --port 65536: must be in 1-65535",
		"--request http://a --sni b":             `invalid --sni "b": must be used with a request of scheme https, grpcs or tls`,
		"--request https://a --sni *.b":          `invalid --sni "*.b": must be a DNS name without wildcards`,
		"--request https://a --sni 192.0.2.1":    `invalid --sni "192.0.2.1": must be a DNS name without wildcards`,
		"--request http://a --gateway a/b/c":     `invalid --gateway "a/b/c": must be NAMESPACE/NAME or NAME`,
		"--request http://a --gateway /b":        `invalid --gateway "/b": must be NAMESPACE/NAME or NAME`,
		"--request http://a --gateway infra/edge --client-namespace web": "invalid --client-namespace: must not be used with --gateway",
		"--request https://a --client-namespace web":                     "invalid --client-namespace: must be used with a request of scheme http or grpc; TLS in a mesh is not supported",
		"--request tcp://:1 --client-namespace web":                      "invalid --client-namespace: must be used with a request of scheme http or grpc; TCP in a mesh is not supported",
		"--request http://cart.shop.org --client-namespace web":          `invalid --request: host "cart.shop.org" must be that of a Service with --client-namespace: NAME, NAME.NAMESPACE or NAME.NAMESPACE.svc.cluster.local`,
	} {
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
