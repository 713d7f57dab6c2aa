package gateway_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	"overrule.dev/overrule/internal/gateway"
)

// listening is a gateway infra/edge with the given listeners; each is a flow
// map of YAML.
func listening(t testing.TB, listeners ...string) *gateway.Gateway {
	text := "metadata: {namespace: infra, name: edge}\nspec:\n  gatewayClassName: istio\n  listeners:\n"
	for _, l := range listeners {
		text += "  - " + l + "\n"
	}
	return readGateway(t, text)
}

// routing is a route app/r with a spec in YAML.
func routing(t testing.TB, namespace, spec string) *gateway.Route {
	return httpRoute(t, fmt.Sprintf("metadata: {namespace: %s, name: r}\nspec: %s\n", namespace, spec))
}

const allowAll = "allowedRoutes: {namespaces: {from: All}}"

// SEMANTICS section 7: what a parentRef selects.
func TestParentRefs(t *testing.T) {
	g := listening(t,
		"{name: http, port: 80, protocol: HTTP, "+allowAll+"}",
		"{name: alt, port: 8080, protocol: HTTP, "+allowAll+"}",
		"{name: https, port: 443, protocol: HTTPS, "+allowAll+"}",
	)
	tests := map[string]struct {
		namespace, refs string
		want            []int
	}{
		"without a section or port, every listener":        {"app", "[{namespace: infra, name: edge}]", []int{0, 1, 2}},
		"in its own namespace it needs no namespace":       {"infra", "[{name: edge}]", []int{0, 1, 2}},
		"without a namespace it means its own":             {"app", "[{name: edge}]", nil},
		"another name":                                     {"app", "[{namespace: infra, name: other}]", nil},
		"a section":                                        {"app", "[{namespace: infra, name: edge, sectionName: alt}]", []int{1}},
		"a section that does not exist":                    {"app", "[{namespace: infra, name: edge, sectionName: none}]", nil},
		"a port":                                           {"app", "[{namespace: infra, name: edge, port: 443}]", []int{2}},
		"a section and its port":                           {"app", "[{namespace: infra, name: edge, sectionName: http, port: 80}]", []int{0}},
		"a section and the port of another":                {"app", "[{namespace: infra, name: edge, sectionName: http, port: 443}]", nil},
		"two references add up, in the listeners' order":   {"app", "[{namespace: infra, name: edge, sectionName: https}, {namespace: infra, name: edge, port: 80}]", []int{0, 2}},
		"a listener that two references name counts once":  {"app", "[{namespace: infra, name: edge}, {namespace: infra, name: edge, sectionName: alt}]", []int{0, 1, 2}},
		"group and kind may be written out":                {"app", "[{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra, name: edge}]", []int{0, 1, 2}},
		"a Service of that name is no gateway":             {"app", `[{group: "", kind: Service, namespace: infra, name: edge}]`, nil},
		"nor is a ListenerSet":                             {"app", "[{kind: ListenerSet, namespace: infra, name: edge}]", nil},
		"nor a Gateway of another group":                   {"app", "[{group: example.com, kind: Gateway, namespace: infra, name: edge}]", nil},
		"no references":                                    {"app", "[]", nil},
		"a Service beside the gateway does not disturb it": {"app", `[{group: "", kind: Service, name: edge}, {namespace: infra, name: edge, sectionName: http}]`, []int{0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := routing(t, test.namespace, "{parentRefs: "+test.refs+"}")
			assert.Equal(t, test.want, attached(gateway.OwnListeners(g), r, nil))
		})
	}
}

// SEMANTICS section 7: which routes a listener allows.
func TestAllowedRoutes(t *testing.T) {
	const http, grpc, tls, tcp, udp = "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"
	other := labels.Set{"team": "red"}
	tests := map[string]struct {
		listener  string // after name and port
		kind      string
		namespace string
		labels    labels.Set
		want      bool
	}{
		"by default the gateway's namespace":             {"protocol: HTTP", http, "infra", nil, true},
		"by default no other":                            {"protocol: HTTP", http, "app", nil, false},
		"allowedRoutes without namespaces is Same":       {"protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute}]}", http, "app", nil, false},
		"namespaces without from is Same":                {"protocol: HTTP, allowedRoutes: {namespaces: {}}", http, "app", nil, false},
		"Same":                                           {"protocol: HTTP, allowedRoutes: {namespaces: {from: Same}}", http, "infra", nil, true},
		"Same and another":                               {"protocol: HTTP, allowedRoutes: {namespaces: {from: Same}}", http, "app", nil, false},
		"All":                                            {"protocol: HTTP, " + allowAll, http, "app", nil, true},
		"None, not even its own":                         {"protocol: HTTP, allowedRoutes: {namespaces: {from: None}}", http, "infra", nil, false},
		"a selector on labels that fit":                  {"protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}", http, "app", other, true},
		"a selector on labels that do not":               {"protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: blue}}}}", http, "app", other, false},
		"a selector does not let its own namespace in":   {"protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: blue}}}}", http, "infra", other, false},
		"a selector by expressions":                      {"protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: team, operator: Exists}]}}}", http, "app", other, true},
		"a selector that cannot be read selects nothing": {"protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: team, operator: Is}]}}}", http, "app", other, false},
		"an absent selector selects nothing":             {"protocol: HTTP, allowedRoutes: {namespaces: {from: Selector}}", http, "app", other, false},
		"an empty selector selects all":                  {"protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {}}}", http, "app", other, true},
		"a selector is ignored with All":                 {"protocol: HTTP, allowedRoutes: {namespaces: {from: All, selector: {matchLabels: {team: blue}}}}", http, "app", other, true},

		"HTTP takes GRPCRoutes":                         {"protocol: HTTP, " + allowAll, grpc, "app", nil, true},
		"HTTPS takes both":                              {"protocol: HTTPS, " + allowAll, grpc, "app", nil, true},
		"TLS takes neither":                             {"protocol: TLS, " + allowAll, http, "app", nil, false},
		"TCP takes neither":                             {"protocol: TCP, " + allowAll, grpc, "app", nil, false},
		"UDP takes neither":                             {"protocol: UDP, " + allowAll, http, "app", nil, false},
		"TLS takes TLSRoutes":                           {"protocol: TLS, " + allowAll, tls, "app", nil, true},
		"TLS takes TCPRoutes":                           {"protocol: TLS, " + allowAll, tcp, "app", nil, true},
		"TLS takes no TCPRoutes that it passes through": {"protocol: TLS, tls: {mode: Passthrough}, " + allowAll, tcp, "app", nil, false},
		"TLS takes TLSRoutes that it passes through":    {"protocol: TLS, tls: {mode: Passthrough}, " + allowAll, tls, "app", nil, true},
		"TLS takes no UDPRoutes":                        {"protocol: TLS, " + allowAll, udp, "app", nil, false},
		"TCP takes TCPRoutes":                           {"protocol: TCP, " + allowAll, tcp, "app", nil, true},
		"TCP takes no TLSRoutes":                        {"protocol: TCP, " + allowAll, tls, "app", nil, false},
		"UDP takes UDPRoutes":                           {"protocol: UDP, " + allowAll, udp, "app", nil, true},
		"UDP takes no TCPRoutes":                        {"protocol: UDP, " + allowAll, tcp, "app", nil, false},
		"HTTP takes no TLSRoutes":                       {"protocol: HTTP, " + allowAll, tls, "app", nil, false},
		"HTTPS takes no TCPRoutes":                      {"protocol: HTTPS, " + allowAll, tcp, "app", nil, false},
		"TLS narrowed to TCPRoutes":                     {"protocol: TLS, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: TCPRoute}]}", tls, "app", nil, false},
		"an unknown protocol allows UDPRoutes":          {"protocol: example.com/quic, " + allowAll, udp, "app", nil, true},
		"named kinds narrow":                            {"protocol: HTTP, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}", http, "app", nil, false},
		"a kind that is named":                          {"protocol: HTTP, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}", grpc, "app", nil, true},
		"named kinds never widen":                       {"protocol: TCP, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: HTTPRoute}]}", http, "app", nil, false},
		"a kind of that name in another group":          {"protocol: HTTP, allowedRoutes: {namespaces: {from: All}, kinds: [{group: example.com, kind: HTTPRoute}]}", http, "app", nil, false},
		"only kinds that do not fit: no routes at all":  {"protocol: HTTP, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: TCPRoute}]}", grpc, "app", nil, false},
		"an unknown protocol allows any kind":           {"protocol: example.com/quic, " + allowAll, grpc, "app", nil, true},
		"an unknown protocol allows its kinds":          {"protocol: example.com/quic, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: HTTPRoute}]}", http, "app", nil, true},
		"an unknown protocol allows only its kinds":     {"protocol: example.com/quic, allowedRoutes: {namespaces: {from: All}, kinds: [{kind: HTTPRoute}]}", grpc, "app", nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := listening(t, "{name: l, port: 80, "+test.listener+"}")
			text := "metadata: {namespace: " + test.namespace + ", name: r}\nspec: {parentRefs: [{namespace: infra, name: edge}]}\n"
			r := route(t, test.kind, text)
			assert.Equal(t, test.want, len(attached(gateway.OwnListeners(g), r, test.labels)) == 1)
		})
	}
}

// A route attaches to those listeners that allow it by all conditions together.
func TestListenersAreIndependent(t *testing.T) {
	g := listening(t,
		"{name: a, port: 80, protocol: HTTP, hostname: a.example.com, "+allowAll+"}",
		"{name: any, port: 80, protocol: HTTP, hostname: '*.example.com', "+allowAll+"}",
		"{name: same, port: 80, protocol: HTTP, hostname: '*.example.com'}",
		"{name: tcp, port: 81, protocol: TCP, "+allowAll+"}",
		"{name: other, port: 82, protocol: HTTP, "+allowAll+"}",
	)
	r := routing(t, "app", "{parentRefs: [{namespace: infra, name: edge, port: 80}], hostnames: [a.example.com]}")
	assert.Equal(t, []int{0, 1}, attached(gateway.OwnListeners(g), r, nil))
}
