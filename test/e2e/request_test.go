//go:build e2e

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/outputschema"
)

// requestObjects are two gateways with listeners of several protocols, routes on them, and
// policies on the first gateway and on one rule.
const requestObjects = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: INFRA, name: outer}
spec:
  gatewayClassName: shop
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
  - {name: shop, protocol: HTTPS, port: 443, hostname: shop.example.com, tls: {certificateRefs: [{name: shop}]}, allowedRoutes: {namespaces: {from: All}}}
  - {name: any, protocol: HTTPS, port: 443, hostname: "*.example.com", tls: {certificateRefs: [{name: any}]}, allowedRoutes: {namespaces: {from: All}}}
  - {name: vault, protocol: TLS, port: 8443, hostname: vault.example.com, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}
  - {name: db, protocol: TCP, port: 5432, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: INFRA, name: inner}
spec:
  gatewayClassName: shop
  listeners: [{name: plain, protocol: HTTP, port: 8080, hostname: shop.example.com, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: shop}
spec:
  hostnames: [shop.example.com]
  parentRefs: [{namespace: INFRA, name: outer}, {namespace: INFRA, name: inner}]
  rules:
  - {name: all, matches: [{path: {type: PathPrefix, value: /}}]}
  - {name: cart, matches: [{path: {type: PathPrefix, value: /cart}}]}
  - {name: checkout, matches: [{path: {type: Exact, value: /cart/checkout}}]}
  - {name: beta, matches: [{path: {type: PathPrefix, value: /cart}, headers: [{name: x-team, value: beta}]}]}
  - {name: search, matches: [{path: {type: PathPrefix, value: /cart}, queryParams: [{name: q, value: new}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: narrow}
spec:
  hostnames: [narrow.example.com]
  parentRefs: [{namespace: INFRA, name: outer, sectionName: http}]
  rules: [{name: only, matches: [{path: {type: PathPrefix, value: /only}}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {namespace: APP, name: vault}
spec:
  hostnames: [vault.example.com]
  parentRefs: [{namespace: INFRA, name: outer, sectionName: vault}]
  rules: [{backendRefs: [{name: vault, port: 8443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {namespace: APP, name: db}
spec:
  parentRefs: [{namespace: INFRA, name: outer, sectionName: db}]
  rules: [{backendRefs: [{name: db, port: 5432}]}]
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: INFRA, name: outer}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: outer}
  overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: APP, name: cart}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop, sectionName: cart}
  rules: {authorization: {customers: {group: buyers}}}
`

// gatewayKinds are the resources of Gateway API by which requests are routed.
var gatewayKinds = []string{
	"gatewayclasses", "gateways", "httproutes", "grpcroutes", "tlsroutes", "tcproutes", "udproutes", "listenersets", "referencegrants",
}

// TestRequests asks on a cluster what holds for requests.
func TestRequests(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "requests")
	succeed(t, g.apply(requestObjects))
	who := g.asker(t, "everything", nil)
	t.Run("served", func(t *testing.T) { servesRequests(t, g, who) })
	t.Run("not served", func(t *testing.T) { servesNothing(t, g, who) })
	t.Run("policies", func(t *testing.T) { showsPoliciesOfRequest(t, g, who) })
	t.Run("candidates", func(t *testing.T) { explainsRequest(t, g, who) })
	t.Run("rights", func(t *testing.T) { namesWhatIsUnread(t, g) })
}

// asker returns a user who is allowed to list, and nothing else, all that requests and
// policies depend on, except for some resources.
func (g testNamespaces) asker(t *testing.T, name string, except []string) *env.User {
	t.Helper()
	rule := func(group string, resources ...string) rbacv1.PolicyRule {
		resources = slices.DeleteFunc(slices.Clone(resources), func(r string) bool { return slices.Contains(except, r) })
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: append(resources, "none"), Verbs: []string{"get", "list"}}
	}
	return g.c.MustAddUser(t, g.app+"-"+name, nil,
		rule("", "namespaces", "services"), rule(api.GatewayGroup, append(gatewayKinds, "backendtlspolicies")...),
		rule("kuadrant.io", "authpolicies", "ratelimitpolicies"), rule("policies.example.com", "colorpolicies", "timeoutpolicies"),
		rule("apiextensions.k8s.io", "customresourcedefinitions"), rule(api.Group, "policyprofiles", "policyconstraints", "clusterpolicyconstraints"))
}

// ask runs effective --request or explain --request, requires output that matches its
// schema, an exit code that says whether anything serves the request, and no warning, and
// decodes the output.
func (g testNamespaces) ask(t *testing.T, who *env.User, command string, into any, request, flags string) *api.ServedRequest {
	t.Helper()
	got := who.Overrule(append([]string{command, "-o", "json", "--request", request}, strings.Fields(g.expand(flags))...)...)
	kind := map[string]string{"effective": api.KindEffectivePolicyList, "explain": api.KindExplanationList}[command]
	require.LessOrEqual(t, got.Code, 1, got.Stderr)
	require.NoError(t, outputschema.Validate(t, kind, got.Stdout), got.Stdout)
	assert.NotContains(t, got.Stderr, "warning: ")
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), into))
	var list struct {
		Items   []json.RawMessage
		Request *api.ServedRequest
	}
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list))
	require.NotNil(t, list.Request)
	assert.Equal(t, map[bool]int{true: 0, false: 1}[list.Request.Served], got.Code)
	if !list.Request.Served {
		assert.Empty(t, list.Items)
	}
	return list.Request
}

// places describes where a request goes at the gateways of the test, such as
// "outer#shop shop#cart: TLSTerminated" with the codes of the assumptions: as far as the
// rule if one serves it, else as far as the listener or the gateway.
func (g testNamespaces) places(r *api.ServedRequest) []string {
	var out []string
	for _, at := range r.At {
		var text, gateway, codes []string
		for _, e := range at.Path {
			switch {
			case e.Kind == "Gateway":
				gateway = []string{e.Namespace, e.Name}
			case e.Kind == "Listener" || strings.HasSuffix(e.Kind, "RouteRule"):
				text = append(text, e.Name+"#"+e.Section)
			}
		}
		if text == nil {
			text = gateway[1:]
		}
		for _, a := range at.Assumptions {
			codes = append(codes, string(a.Code))
		}
		if slices.Sort(codes); len(codes) > 0 {
			text[len(text)-1] += ": " + strings.Join(codes, ", ")
		}
		if gateway[0] == g.infra {
			out = append(out, strings.Join(text, " "))
		}
	}
	return out
}

// Where requests go by Gateway API's precedence, and what is assumed, as docs/cli.md says.
func servesRequests(t *testing.T, g testNamespaces, who *env.User) {
	for name, c := range map[string]struct {
		request, flags string
		want           []string
	}{
		"the listener by the server name": {"https://shop.example.com/cart", "--gateway INFRA/outer", []string{"outer#shop shop#cart"}},
		"TLS that is terminated before":   {"https://shop.example.com/cart", "--gateway INFRA/inner", []string{"inner#plain shop#cart: TLSTerminated"}},
		"all gateways, those without listeners for it left out, those that serve it first": {
			"https://shop.example.com/cart", "", []string{"outer#shop shop#cart", "inner#plain shop#cart: TLSTerminated", "edge#http: TLSTerminated"},
		},
		"the longest prefix":            {"GET http://shop.example.com/cart/x", "--gateway INFRA/outer", []string{"outer#http shop#cart"}},
		"an exact path":                 {"GET http://shop.example.com/cart/checkout", "--gateway INFRA/outer", []string{"outer#http shop#checkout"}},
		"a header in another case":      {"http://shop.example.com/cart", "-H X-TEAM:beta --gateway INFRA/outer", []string{"outer#http shop#beta"}},
		"a header with another value":   {"http://shop.example.com/cart", "-H x-team:alpha --gateway INFRA/outer", []string{"outer#http shop#cart"}},
		"a query parameter":             {"http://shop.example.com/cart?q=new", "--gateway INFRA/outer", []string{"outer#http shop#search"}},
		"a header before a parameter":   {"http://shop.example.com/cart?q=new", "-H x-team:beta --gateway INFRA/outer", []string{"outer#http shop#beta"}},
		"the header Host":               {"http://192.0.2.1/cart", "-H Host:shop.example.com --gateway INFRA/outer", []string{"outer#http shop#cart"}},
		"the port of the listener":      {"http://shop.example.com/", "--port 8080", []string{"inner#plain shop#all"}},
		"the port of the URL":           {"http://shop.example.com:8080/", "", []string{"inner#plain shop#all", "outer#http shop#all: Port", "edge#http: Port"}},
		"a port that is mapped":         {"http://shop.example.com:9000/", "--gateway INFRA/inner", []string{"inner#plain shop#all: Port"}},
		"the namespace of the gateway":  {"http://shop.example.com:8080/", "--gateway inner -n INFRA", []string{"inner#plain shop#all"}},
		"a server name beside the host": {"https://shop.example.com/cart", "--sni other.example.com --gateway INFRA/outer", []string{"outer#any shop#cart: ServerName"}},
		"TLS that is passed through":    {"tls://vault.example.com:8443", "", []string{"outer#vault vault#rule-1"}},
		"TLS by another server name":    {"tls://x.example.com:8443", "--sni vault.example.com", []string{"outer#vault vault#rule-1"}},
		"TCP by its port":               {"tcp://:5432", "--gateway INFRA/outer", []string{"outer#db db#rule-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			request := g.ask(t, who, "effective", &api.EffectivePolicyList{}, c.request, c.flags)
			assert.True(t, request.Served)
			assert.Equal(t, c.want, g.places(request))
			assert.Equal(t, c.want, g.places(g.ask(t, who, "explain", &api.ExplanationList{}, c.request, c.flags)))
		})
	}
}

// How far requests come that nothing serves.
func servesNothing(t *testing.T, g testNamespaces, who *env.User) {
	for name, c := range map[string]struct{ request, flags, want string }{
		"no listener for the protocol": {"udp://:54", "--gateway INFRA/outer", "outer"},
		"no listener for the host":     {"http://other.example.org/", "--gateway INFRA/inner", "inner"},
		"no listener at the port":      {"http://shop.example.com/", "--port 81 --gateway INFRA/outer", "outer"},
		"no route for the host":        {"http://other.example.org/", "--gateway INFRA/outer", "outer#http"},
		"no rule":                      {"http://narrow.example.com/other", "--gateway INFRA/outer", "outer#http"},
		"no request":                   {"tls://shop.example.com:443", "--gateway INFRA/outer", "outer#shop"},
	} {
		t.Run(name, func(t *testing.T) {
			request := g.ask(t, who, "effective", &api.EffectivePolicyList{}, c.request, c.flags)
			assert.False(t, request.Served)
			assert.Equal(t, []string{c.want}, g.places(request))
			for _, at := range request.At {
				assert.NotEmpty(t, at.Message)
			}
			assert.Equal(t, []string{c.want}, g.places(g.ask(t, who, "explain", &api.ExplanationList{}, c.request, c.flags)))
		})
	}
	got := who.Overrule("effective", "--request", "http://shop.example.com/", "--gateway", g.infra+"/absent")
	assert.Equal(t, 1, got.Code)
	assert.Empty(t, got.Stdout)
	assert.Contains(t, got.Stderr, g.infra+"/absent not found")
}

// The items are those on the paths along which the request goes.
func showsPoliciesOfRequest(t *testing.T, g testNamespaces, who *env.User) {
	const sso, customers = `rules.authentication.sso = {"issuer":"ours"} from outer (overrides)`, `rules.authorization.customers = {"group":"buyers"} from cart (bare)`
	for name, c := range map[string]struct {
		request, flags string
		want           []string
	}{
		"the gateway's policy and the rule's": {"https://shop.example.com/cart", "--gateway INFRA/outer", []string{sso, customers}},
		"another rule":                        {"https://shop.example.com/cart", "-H x-team:beta --gateway INFRA/outer", []string{sso}},
		"another gateway":                     {"http://shop.example.com:8080/cart", "--gateway INFRA/inner", []string{customers}},
		"no policy":                           {"http://shop.example.com:8080/", "--gateway INFRA/inner", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var list api.EffectivePolicyList
			request := g.ask(t, who, "effective", &list, c.request, c.flags+" --kind AuthPolicy")
			var got []string
			for _, item := range list.Items {
				assert.Equal(t, request.At[0].Path, item.Path, "the path of the rule that serves the request")
				for _, r := range item.Rules {
					got = append(got, r.Rule+" = "+valueAt(t, item.Spec, r.Rule)+" from "+r.From.Name+" ("+r.Block+")")
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// The rules that a request meets, in their order, with the criterion that decided.
func explainsRequest(t *testing.T, g testNamespaces, who *env.User) {
	var list api.ExplanationList
	request := g.ask(t, who, "explain", &list, "http://shop.example.com/cart/checkout?q=new", "-H x-team:beta --gateway INFRA/outer")
	require.Len(t, request.At, 1)
	var got []string
	for _, c := range request.At[0].Candidates {
		assert.Equal(t, "shop.example.com", c.Hostname)
		assert.NotEmpty(t, c.Match)
		got = append(got, strings.TrimSpace(c.Rule.Kind+" "+c.Rule.Section+" "+string(c.After)))
	}
	assert.Equal(t, []string{
		"HTTPRouteRule checkout", "HTTPRouteRule beta ExactPath", "HTTPRouteRule search ExactPath", "HTTPRouteRule cart ExactPath", "HTTPRouteRule all ExactPath",
	}, got)
	require.Len(t, list.Items, 1, "the AuthPolicy of the gateway")
	assert.Equal(t, request.At[0].Path, list.Items[0].Path)
	require.Len(t, list.Items[0].Rules, 1)
	assert.Equal(t, "rules.authentication.sso", list.Items[0].Rules[0].Rule)
	assert.Equal(t, map[string]any{"issuer": "ours"}, list.Items[0].Rules[0].Value)

	request = g.ask(t, who, "explain", &list, "http://shop.example.com/cart?q=new", "-H x-team:beta --gateway INFRA/outer")
	var after []string
	for _, c := range request.At[0].Candidates {
		after = append(after, strings.TrimSpace(c.Rule.Section+" "+string(c.After)))
	}
	assert.Equal(t, []string{"beta", "search Headers", "cart Headers", "all LongerPath"}, after)

	var plain api.EffectivePolicyList
	assert.Empty(t, g.ask(t, who, "effective", &plain, "http://shop.example.com/cart", "--gateway INFRA/outer").At[0].Candidates, "only explain has candidates")
}

// inNamespace allows a user to read everything in one namespace.
const inNamespace = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: APP, name: read}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: APP-own}]
`

// A request of a user who is not allowed to list what routes requests has no answer. Policy
// kinds that a user is not allowed to list are named.
func namesWhatIsUnread(t *testing.T, g testNamespaces) {
	own := g.c.MustAddUser(t, g.app+"-own", nil)
	succeed(t, g.apply(inNamespace))
	request := []string{"effective", "-o", "json", "--gateway", g.infra + "/outer", "--request", "https://shop.example.com/cart"}
	got := own.Overrule(request...)
	assert.Equal(t, 2, got.Code, "the gateway is in a namespace that the user cannot read: %s", got.Stdout)
	assert.Empty(t, got.Stdout)
	assert.Contains(t, got.Stderr, "forbidden")

	for _, resource := range append(slices.Clone(gatewayKinds), "namespaces", "services") {
		t.Run(resource, func(t *testing.T) {
			got := g.asker(t, "no-"+resource, []string{resource}).Overrule(request...)
			assert.Contains(t, got.Stderr, resource)
			assert.Contains(t, got.Stderr, "forbidden")
			if slices.Contains([]string{"gatewayclasses", "referencegrants", "udproutes", "services"}, resource) {
				assert.Equal(t, 0, got.Code, "requests are not routed by it: %s", got.Stderr)
				return
			}
			assert.Equal(t, 2, got.Code, got.Stdout)
			assert.Empty(t, got.Stdout)
		})
	}
	mesh := g.asker(t, "no-mesh", []string{"services"}).Overrule("effective", "--request", "http://toys/", "--client-namespace", g.app)
	assert.Equal(t, 2, mesh.Code, mesh.Stdout)
	assert.Contains(t, mesh.Stderr, "error: find where the request goes: services is forbidden")

	t.Run("authpolicies", func(t *testing.T) {
		got := g.asker(t, "no-authpolicies", []string{"authpolicies"}).Overrule(request...)
		require.Equal(t, 0, got.Code, got.Stderr)
		var list api.EffectivePolicyList
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list))
		assert.Equal(t, []string{"outer#shop shop#cart"}, g.places(list.Request))
		assert.Empty(t, list.Items)
		assert.Contains(t, got.Stderr, "authpolicies.kuadrant.io")
		assert.Contains(t, got.Stderr, "forbidden")
	})
}
