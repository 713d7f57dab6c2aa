//go:build long

package peers

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/worlds"
)

// generator builds random worlds.
type generator struct{ *rand.Rand }

// world returns the world of a seed: gateways, a listener set, routes, and policies of each
// kind on all that they may target.
func randomWorld(t *testing.T, seed uint64) world {
	t.Helper()
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	docs := []string{worlds.ServiceDoc("app", "backend", 8080), worlds.ServiceDoc("team", "backend", 8080)}
	gateways := []string{"edge", "inner"}[:1+g.IntN(2)]
	var parents []string
	targets := []string{"{group: gateway.networking.k8s.io, kind: Gateway, name: absent}"}
	for _, name := range gateways {
		listeners := []string{"a", "b", "c"}[:1+g.IntN(3)]
		docs = append(docs, worlds.GatewayDoc(name, gatewayClass, listeners...))
		parents = append(parents, worlds.ToGateway(name))
		targets = append(targets, target("Gateway", name, ""))
		for _, l := range listeners {
			parents = append(parents, fmt.Sprintf("{namespace: infra, name: %s, sectionName: %s}", name, l))
			targets = append(targets, target("Gateway", name, l))
		}
	}
	w := world{}
	if g.IntN(3) == 0 {
		docs = append(docs, worlds.SetDoc("infra", "more", gateways[0], "x", "z"))
		parents = append(parents, worlds.ToSet("infra", "more"), "{kind: ListenerSet, namespace: infra, name: more, sectionName: x}")
		targets = append(targets, target("ListenerSet", "more", ""), target("ListenerSet", "more", "x"))
	}
	routeTargets := map[string][]string{}
	for i := range 1 + g.IntN(3) {
		kind, namespace, name := "HTTPRoute", g.pick("app", "app", "team"), fmt.Sprintf("r%d", i)
		if g.IntN(5) == 0 {
			kind = "GRPCRoute"
		}
		rules := []string{"{name: one, backendRefs: [{name: backend, port: 8080}]}", "{name: two, backendRefs: [{name: backend, port: 8080}]}"}[:1+g.IntN(2)]
		of := []string{g.pick(parents...)}
		if other := g.pick(parents...); other != of[0] && g.IntN(2) == 0 {
			of = append(of, other)
		}
		docs = append(docs, worlds.RouteTo(kind, namespace, name, "["+strings.Join(rules, ", ")+"]", of...))
		routeTargets[namespace] = append(routeTargets[namespace], target(kind, name, ""), target(kind, name, "one"), target(kind, name, "two"))
	}
	for i := range 2 + g.IntN(6) {
		kind := g.pick("ClientTrafficPolicy", "BackendTrafficPolicy", "BackendTrafficPolicy", "BackendTrafficPolicy", "SecurityPolicy", "SecurityPolicy", "EnvoyExtensionPolicy")
		namespace, on, spec := "infra", g.pick(targets...), g.spec(kind)
		if n := g.pick("app", "app", "team"); kind != "ClientTrafficPolicy" && g.IntN(2) == 0 && len(routeTargets[n]) > 0 {
			namespace, on = n, g.pick(routeTargets[n]...)
			if merge := g.pick("", "", "StrategicMerge", "JSONMerge"); merge != "" {
				spec = append(spec, "mergeType: "+merge)
			}
		}
		docs = append(docs, worlds.PolicyDoc(kind, namespace, fmt.Sprintf("p%d", i), strings.Join(append(spec, "targetRefs: ["+on+"]"), "\n")))
	}
	for _, doc := range docs {
		var o object
		require.NoError(t, yaml.Unmarshal([]byte(doc), &o), doc)
		at(o, "metadata")["creationTimestamp"] = fmt.Sprintf("2026-01-0%dT00:00:00Z", 1+g.IntN(3))
		w.add(listOf(text(o, "kind")), o)
	}
	return w
}

func target(kind, name, section string) string {
	out := "{group: gateway.networking.k8s.io, kind: " + kind + ", name: " + name
	if section != "" {
		out += ", sectionName: " + section
	}
	return out + "}"
}

// listOf returns the name of the list of a kind.
func listOf(kind string) string {
	for _, l := range readLists {
		if l.kind == kind {
			return l.list
		}
	}
	return ""
}

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }

// fields are those of the specs of a kind; a %d is another number each time.
var fields = map[string][]string{
	"ClientTrafficPolicy": {
		"timeout: {http: {idleTimeout: %ds}}", "headers: {enableEnvoyHeaders: true}", "connection: {bufferLimit: %dKi}",
		"http1: {http10: {}}", "tcpKeepalive: {probes: %d}", "path: {disableMergeSlashes: true}",
	},
	"BackendTrafficPolicy": {
		"timeout: {http: {requestTimeout: %ds}}", "timeout: {tcp: {connectTimeout: %ds}}", "timeout: {http: {connectionIdleTimeout: %ds}}",
		"retry: {numRetries: %d}", "retry: {perRetry: {timeout: %ds}}", "circuitBreaker: {maxConnections: %d}", "circuitBreaker: {maxPendingRequests: %d}",
		"compressor: [{type: Gzip, gzip: {}}]", "compressor: [{type: Brotli, brotli: {}}, {type: Gzip, gzip: {}}]", "httpUpgrade: [{type: websocket}]",
		"rateLimit: {global: {rules: [{limit: {requests: %d, unit: Hour}}]}}",
		"rateLimit: {local: {rules: [{limit: {requests: %d, unit: Hour}}]}}",
		"rateLimit: {local: {rules: [{clientSelectors: [{headers: [{name: x, value: other}]}], limit: {requests: %d, unit: Hour}}]}}",
		"useClientProtocol: true", "connection: {bufferLimit: %dKi}", "tcpKeepalive: {probes: %d}", "loadBalancer: {type: Random}",
		"faultInjection: {abort: {httpStatus: 500, percentage: %d}}",
	},
	"SecurityPolicy": {
		"cors: {allowOrigins: ['https://a%d.example.com']}", "cors: {maxAge: %ds}", "cors: {allowMethods: [GET, POST]}",
		"authorization: {defaultAction: Deny}", "authorization: {defaultAction: Allow, rules: [{name: r%d, action: Deny, principal: {clientCIDRs: [10.0.0.0/8]}}]}",
		"jwt: {providers: [{name: p%d, issuer: i, remoteJWKS: {uri: 'https://keys.example.com/jwks'}}]}",
	},
	"EnvoyExtensionPolicy": {
		"wasm: [{name: w%d, code: {type: HTTP, http: {url: 'https://example.com/w.wasm'}}}]",
		"lua: [{type: Inline, inline: 'function envoy_on_request(h) h:headers():add(\"n\", \"%d\") end'}]",
	},
}

// spec returns some fields of a kind, none of them twice.
func (g generator) spec(kind string) []string {
	var out []string
	used := map[string]bool{}
	for range g.IntN(4) {
		f := g.pick(fields[kind]...)
		name, _, _ := strings.Cut(f, ":")
		if used[name] {
			continue
		}
		used[name] = true
		if strings.Contains(f, "%d") {
			f = fmt.Sprintf(f, 1+g.IntN(90))
		}
		out = append(out, f)
	}
	return out
}
