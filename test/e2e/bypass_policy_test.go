//go:build e2e

package e2e

import "strings"

// whole is the world with an override that leaves nothing else in place.
var (
	whole = namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) +
		auth("INFRA", "gw-auth", gatewayRef("edge"), "overrides: {strategy: atomic, rules: {authentication: {sso: {issuer: ours}}}}")
	conditional = namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge, byPath) + routeLimit("20") + limited
	limited     = object("RateLimitPolicy", "namespace: INFRA, name: gw-limits", "{targetRef: {"+gatewayRef("edge")+"}, overrides: "+
		"{strategy: merge, when: 'spec.limits.login.rates.exists(r, r.limit > 50)', limits: {login: {rates: [{limit: 50, window: 10s}]}}}}")
	// onRoute is a world with an override on the route itself.
	onRoute = namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) +
		object("HTTPRoute", "namespace: APP, name: bookstore", "{parentRefs: ["+onEdge+"], rules: ["+byPath+"]}") +
		auth("APP", "gw-auth", routeRef("toystore"), "overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}")
	// colors holds on two gateways.
	colors       = object("ColorPolicy", "namespace: INFRA, name: gw-colors", "{targetRefs: [{"+gatewayRef("edge")+"}, {"+gatewayRef("inner")+"}], overrides: {colors: {wall: red}}}")
	twoListeners = namespaces + gateway("edge", onHTTP, onPlain) + gateway("inner", onHTTP) + route(onEdge, byPath)
)

// routeLimit is the route's own limit.
func routeLimit(limit string) string {
	return object("RateLimitPolicy", "namespace: APP, name: limits",
		"{targetRef: {"+routeRef("toystore")+"}, limits: {login: {rates: [{limit: "+limit+", window: 10s}]}}}")
}

// aroundPolicies are writes of the policy that has the override.
var aroundPolicies = map[string]row{
	"policy-deleted": way{
		world: world, write: remove("INFRA", "authpolicy/gw-auth"), code: "OverrideRemoved",
		says: []string{"the overrides of AuthPolicy policy-deleted-infra/gw-auth hold rules.authentication.sso on 2 paths, and would not any more"},
	},
	"policy-value": way{
		world: world, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"sso":{"issuer":"theirs"}}}}}}`),
	},
	"policy-rule-out": way{
		world: world, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"sso":null,"other":{}}}}}}`),
	},
	"policy-to-defaults": way{
		world: world, code: "OverrideRemoved",
		write: edit("INFRA", "authpolicy/gw-auth", `[{"op":"move","from":"/spec/overrides","path":"/spec/defaults"}]`),
	},
	"policy-to-bare": way{
		world: world, code: "OverrideRemoved",
		write: edit("INFRA", "authpolicy/gw-auth", `[{"op":"move","from":"/spec/overrides/rules","path":"/spec/rules"},{"op":"remove","path":"/spec/overrides"}]`),
	},
	"policy-when-added": way{
		world: world, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"when":"has(spec.rules.authentication.key)"}}}`),
	},
	"policy-when-loosened": way{
		world: conditional, code: "OverrideRemoved",
		write: patch("INFRA", "ratelimitpolicy/gw-limits", `{"spec":{"overrides":{"when":"spec.limits.login.rates.exists(r, r.limit > 5000)"}}}`),
	},
	"policy-conditional-value": way{
		world: conditional, code: "OverrideRemoved",
		write: patch("INFRA", "ratelimitpolicy/gw-limits", `{"spec":{"overrides":{"limits":{"login":{"rates":[{"limit":5000,"window":"10s"}]}}}}}`),
	},
	"policy-atomic-to-merge": way{
		world: whole, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"strategy":"merge"}}}`),
	},
	"policy-to-other-gateway": way{
		world: world, code: "OverrideEvaded",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"targetRef":{"name":"inner"}}}`),
		says: []string{
			"2 paths would slip from under rules.authentication.sso",
			"kubectl auth can-i override authpolicies.kuadrant.io/gw-auth -n policy-to-other-gateway-infra",
		},
	},
	"policy-to-section": way{
		world: twoListeners + held, code: "OverrideEvaded",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"targetRef":{"sectionName":"http"}}}`),
	},
	"policy-to-other-section": way{
		world: twoListeners + auth("INFRA", "gw-auth", gatewayRef("edge")+", sectionName: http", overrides), code: "OverrideEvaded",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"targetRef":{"sectionName":"plain"}}}`),
	},
	"policy-to-missing-target": way{
		world: world, code: "OverrideEvaded",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"targetRef":{"name":"nothing"}}}`),
	},
	"policy-to-other-route": way{
		world: onRoute, code: "OverrideEvaded",
		write: patch("APP", "authpolicy/gw-auth", `{"spec":{"targetRef":{"name":"bookstore"}}}`),
	},
	"policy-to-rule": way{
		world: onRoute, code: "OverrideEvaded",
		write: patch("APP", "authpolicy/gw-auth", `{"spec":{"targetRef":{"sectionName":"toys"}}}`),
	},
	"policy-target-dropped": way{
		world: twoListeners + colors, code: "OverrideEvaded",
		write: edit("INFRA", "colorpolicy/gw-colors", `[{"op":"remove","path":"/spec/targetRefs/0"}]`),
	},
	"policy-by-older-version": way{
		world: coated("Paint"), code: "OverrideRemoved",
		write: patch("INFRA", "paints.v1beta1.policies.example.com/gw-coat", `{"spec":{"overrides":{"colors":{"wall":"blue"}}}}`),
	},
	"older-policy-takes-target": way{
		world: namespaces + object("Varnish", "namespace: INFRA, name: aged", "{targetRef: {"+gatewayRef("inner")+"}, colors: {wall: none}}") + coated("Varnish"),
		code:  "OverrideEvaded",
		write: patch("INFRA", "varnish/aged", `{"spec":{"targetRef":{"name":"edge"}}}`),
	},
	"policy-selector": way{
		world: painted + paint("gw-paint", "targetSelectors: [{group: gateway.networking.k8s.io, kind: Gateway, matchLabels: {tier: public}}]"), code: "OverrideEvaded",
		write: patch("INFRA", "paint/gw-paint", `{"spec":{"targetSelectors":[{"group":"gateway.networking.k8s.io","kind":"Gateway","matchLabels":{"tier":"none"}}]}}`),
	},
	"policy-replaced": way{
		world: world, code: "OverrideRemoved",
		write: command{stdin: auth("INFRA", "gw-auth", gatewayRef("edge"), "rules: {authentication: {sso: {issuer: ours}}}"), args: []string{"replace", "-f", "-"}},
	},
	"policy-recreated": way{
		world: world, code: "OverrideRemoved",
		write: command{
			stdin: auth("INFRA", "gw-auth", gatewayRef("edge"), "rules: {authentication: {sso: {issuer: ours}}}"),
			args:  []string{"replace", "--force", "-f", "-"}, dry: remove("INFRA", "authpolicy/gw-auth").dryRun().args,
		},
	},
	"policy-applied": way{
		world: world, code: "OverrideRemoved",
		write: apply(auth("INFRA", "gw-auth", gatewayRef("edge"), "rules: {authentication: {sso: {issuer: ours}}}")),
	},
	"policy-applied-server-side": way{
		world: world, code: "OverrideRemoved",
		write: apply(auth("INFRA", "gw-auth", gatewayRef("edge"), "overrides: {rules: {authentication: {sso: {issuer: theirs}}}}"), "--server-side", "--force-conflicts"),
	},
	"policies-deleted-all": way{
		world: world, code: "OverrideRemoved",
		write: kubectl("-n", "INFRA", "delete", "authpolicies", "--all"),
	},
	"policies-deleted-collection": way{
		world: world, code: "OverrideRemoved", told: "would not",
		write: command{
			args: []string{"delete", "--raw", "/apis/kuadrant.io/v1/namespaces/INFRA/authpolicies"},
			dry:  []string{"delete", "--raw", "/apis/kuadrant.io/v1/namespaces/INFRA/authpolicies?dryRun=All"},
		},
	},
	"policy-owner": way{
		world: world, code: "OverrideEvaded", says: []string{"which is made its owner"},
		write: patch("INFRA", "authpolicy/gw-auth", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"nobody","uid":"5f0d4b1e-0000-4000-8000-000000000000"}]}}`),
	},
	"lower-gate": way{
		world: world, code: "OverrideWeakened",
		write: apply(auth("APP", "route-auth", routeRef("toystore"), "when: [{predicate: 'false'}], rules: {authorization: {opa: {}}}")),
		says:  []string{"when of AuthPolicy lower-gate-app/route-auth decides whether rules.authentication.sso has an effect"},
		told:  "decides whether",
	},
	"lower-gate-before-route": way{
		world: gated, code: "OverrideWeakened",
		write: apply(route(onEdge, byPath)), told: "decides whether",
	},
	"lower-gate-namespace-label": way{
		world: object("Namespace", "name: APP, labels: {stage: dev}", "{}") + strings.Replace(gated+route(onEdge, byPath), "from: All", "from: Selector, selector: {matchLabels: {stage: prod}}", 1),
		code:  "OverrideWeakened",
		write: kubectl("label", "--overwrite", "namespace/APP", "stage=prod"), told: "decides whether",
	},
	"lower-gate-listener-set": way{
		world: strings.Replace(extended, listenerSet, "", 1) + route(extra, byPath) + held + gate, code: "OverrideWeakened",
		write: apply(listenerSet), told: "decides whether",
	},
	"lower-alternative": way{
		world: world, code: "OverrideWeakened",
		write: apply(auth("APP", "route-auth", routeRef("toystore"), "rules: {authentication: {everyone: {anonymous: {}}}}")),
		says:  []string{"rules.authentication.everyone of AuthPolicy lower-alternative-app/route-auth is enough in place of rules.authentication.sso"},
		told:  "is enough in place of",
	},
	"higher-gate": way{
		world: onRoute, code: "OverrideWeakened",
		write: apply(auth("INFRA", "above", gatewayRef("edge"), "defaults: {strategy: merge, when: [{predicate: 'false'}]}")),
		says:  []string{"when of AuthPolicy higher-gate-infra/above decides whether rules.authentication.sso has an effect"},
		told:  "decides whether",
	},
	"higher-alternative": way{
		world: onRoute, code: "OverrideWeakened",
		write: apply(auth("INFRA", "above", gatewayRef("edge"), "defaults: {strategy: merge, rules: {authentication: {everyone: {anonymous: {}}}}}")),
		told:  "is enough in place of",
	},
	"beside-gate": way{
		world: world + auth("INFRA", "beside", gatewayRef("inner"), "defaults: {strategy: merge, when: [{predicate: 'false'}]}"), code: "OverrideWeakened",
		write: patch("INFRA", "authpolicy/beside", `{"spec":{"targetRef":{"name":"edge"}}}`),
		told:  "decides whether",
	},
	"higher-gate-listener-renamed": way{
		world: onRoute + auth("INFRA", "above", gatewayRef("edge")+", sectionName: plain", "defaults: {strategy: merge, when: [{predicate: 'false'}]}"),
		code:  "OverrideWeakened",
		write: apply(gateway("edge", onPlain)), told: "decides whether",
	},
	"higher-gate-uncovered": way{
		world: onRoute + auth("INFRA", "above", gatewayRef("edge"), "defaults: {strategy: merge, when: [{predicate: 'false'}], rules: {authorization: {opa: {}}}}") +
			auth("APP", "shield", routeRef("toystore"), "when: [{predicate: 'true'}], rules: {authorization: {opa: {}}}"),
		code:  "OverrideWeakened",
		write: remove("APP", "authpolicy/shield"), told: "decides whether",
	},
	"policy-own-gate": way{
		world: world, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"when":[{"predicate":"false"}]}}}`),
		told:  "decides whether",
	},
	"policy-own-alternative": way{
		world: world, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"everyone":{"anonymous":{}}}}}}}`),
		told:  "is enough in place of",
	},
}

// gate is a policy of the route that decides whether others have an effect.
var gate = auth("APP", "route-auth", routeRef("toystore"), "when: [{predicate: 'false'}], rules: {authorization: {opa: {}}}")

// gated is a world in which the gate is there before its route.
var gated = namespaces + gateway("edge", onHTTP) + gate + held

const overrides = "overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}"
