//go:build e2e

package e2e

import "strings"

// whole is an override that replaces all rules.
var (
	replacingOverride = namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) +
		auth("INFRA", "gw-auth", gatewayRef("edge"), "overrides: {strategy: atomic, rules: {authentication: {sso: {issuer: ours}}}}")
	conditional = namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge, byPath) + routeLimit("20") + limited
	limited     = object("RateLimitPolicy", "namespace: INFRA, name: gw-limits", "{targetRef: {"+gatewayRef("edge")+"}, overrides: "+
		"{strategy: merge, when: 'spec.limits.login.rates.exists(r, r.limit > 50)', limits: {login: {rates: [{limit: 50, window: 10s}]}}}}")
	// onRoute has an override on the route itself.
	onRoute = namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) +
		object("HTTPRoute", "namespace: APP, name: bookstore", "{parentRefs: ["+onEdge+"], rules: [{name: books, matches: [{path: {type: PathPrefix, value: /books}}]}]}") +
		auth("APP", "gw-auth", routeRef("toystore"), "overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}")
	// colors is effective on two gateways.
	colors       = object("ColorPolicy", "namespace: INFRA, name: gw-colors", "{targetRefs: [{"+gatewayRef("edge")+"}, {"+gatewayRef("inner")+"}], overrides: {colors: {wall: red}}}")
	twoListeners = namespaces + gateway("edge", onHTTP, onPlain) + gateway("inner", onHTTP) + route(onEdge, byPath)
)

// routeLimit returns the route's own limit.
func routeLimit(limit string) string {
	return object("RateLimitPolicy", "namespace: APP, name: limits",
		"{targetRef: {"+routeRef("toystore")+"}, limits: {login: {rates: [{limit: "+limit+", window: 10s}]}}}")
}

// policyRows are writes of the policy that has the override.
var policyRows = map[string]row{
	"policy-deleted": bypass{
		objects: baseObjects, write: remove("INFRA", "authpolicy/gw-auth"), code: "OverrideRemoved",
		contains: []string{"rules.authentication.sso of AuthPolicy policy-deleted-infra/gw-auth", "2 paths"},
	},
	"policy-value": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"sso":{"issuer":"theirs"}}}}}}`),
	},
	"policy-rule-out": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"sso":null,"other":{}}}}}}`),
	},
	"policy-to-defaults": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: edit("INFRA", "authpolicy/gw-auth", `[{"op":"move","from":"/spec/overrides","path":"/spec/defaults"}]`),
	},
	"policy-to-bare": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: edit("INFRA", "authpolicy/gw-auth", `[{"op":"move","from":"/spec/overrides/rules","path":"/spec/rules"},{"op":"remove","path":"/spec/overrides"}]`),
	},
	"policy-when-added": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"when":"has(spec.rules.authentication.key)"}}}`),
	},
	"policy-when-loosened": bypass{
		objects: conditional, code: "OverrideRemoved",
		write: patch("INFRA", "ratelimitpolicy/gw-limits", `{"spec":{"overrides":{"when":"spec.limits.login.rates.exists(r, r.limit > 5000)"}}}`),
	},
	"policy-conditional-value": bypass{
		objects: conditional, code: "OverrideRemoved",
		write: patch("INFRA", "ratelimitpolicy/gw-limits", `{"spec":{"overrides":{"limits":{"login":{"rates":[{"limit":5000,"window":"10s"}]}}}}}`),
	},
	"policy-atomic-to-merge": bypass{
		objects: replacingOverride, code: "OverrideRemoved",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"strategy":"merge"}}}`),
	},
	"policy-to-other-gateway": bypass{
		objects: baseObjects, code: "OverrideEvaded",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"targetRef":{"name":"inner"}}}`),
		contains: []string{
			"2 paths", "override rules.authentication.sso",
			"authpolicies.kuadrant.io/gw-auth -n policy-to-other-gateway-infra",
		},
	},
	"policy-to-section": bypass{
		objects: twoListeners + gatewayOverride, code: "OverrideEvaded",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"targetRef":{"sectionName":"http"}}}`),
	},
	"policy-to-other-section": bypass{
		objects: twoListeners + auth("INFRA", "gw-auth", gatewayRef("edge")+", sectionName: http", overrides), code: "OverrideEvaded",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"targetRef":{"sectionName":"plain"}}}`),
	},
	"policy-to-missing-target": bypass{
		objects: baseObjects, code: "OverrideEvaded",
		write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"targetRef":{"name":"nothing"}}}`),
	},
	"policy-to-other-route": bypass{
		objects: onRoute, code: "OverrideEvaded",
		write: patch("APP", "authpolicy/gw-auth", `{"spec":{"targetRef":{"name":"bookstore"}}}`),
	},
	"policy-to-rule": bypass{
		objects: onRoute, code: "OverrideEvaded",
		write: patch("APP", "authpolicy/gw-auth", `{"spec":{"targetRef":{"sectionName":"toys"}}}`),
	},
	"policy-target-dropped": bypass{
		objects: twoListeners + colors, code: "OverrideEvaded",
		write: edit("INFRA", "colorpolicy/gw-colors", `[{"op":"remove","path":"/spec/targetRefs/0"}]`),
	},
	"policy-by-older-version": bypass{
		objects: objectsWithOverride("Paint"), code: "OverrideRemoved",
		write: patch("INFRA", "paints.v1beta1.policies.example.com/gw-coat", `{"spec":{"overrides":{"colors":{"wall":"blue"}}}}`),
	},
	"older-policy-takes-target": bypass{
		objects: namespaces + object("Varnish", "namespace: INFRA, name: aged", "{targetRef: {"+gatewayRef("inner")+"}, colors: {wall: none}}") + objectsWithOverride("Varnish"),
		code:    "OverrideEvaded",
		write:   patch("INFRA", "varnish/aged", `{"spec":{"targetRef":{"name":"edge"}}}`),
	},
	"policy-selector": bypass{
		objects: painted + paintPolicy("gw-paint", "targetSelectors: [{group: gateway.networking.k8s.io, kind: Gateway, matchLabels: {tier: public}}]"), code: "OverrideEvaded",
		write: patch("INFRA", "paint/gw-paint", `{"spec":{"targetSelectors":[{"group":"gateway.networking.k8s.io","kind":"Gateway","matchLabels":{"tier":"none"}}]}}`),
	},
	"policy-replaced": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: command{stdin: auth("INFRA", "gw-auth", gatewayRef("edge"), "rules: {authentication: {sso: {issuer: ours}}}"), args: []string{"replace", "-f", "-"}},
	},
	"policy-recreated": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: command{
			stdin: auth("INFRA", "gw-auth", gatewayRef("edge"), "rules: {authentication: {sso: {issuer: ours}}}"),
			args:  []string{"replace", "--force", "-f", "-"}, dry: remove("INFRA", "authpolicy/gw-auth").dryRun().args,
		},
	},
	"policy-applied": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: apply(auth("INFRA", "gw-auth", gatewayRef("edge"), "rules: {authentication: {sso: {issuer: ours}}}")),
	},
	"policy-applied-server-side": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: apply(auth("INFRA", "gw-auth", gatewayRef("edge"), "overrides: {rules: {authentication: {sso: {issuer: theirs}}}}"), "--server-side", "--force-conflicts"),
	},
	"policies-deleted-all": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write: kubectl("-n", "INFRA", "delete", "authpolicies", "--all"),
	},
	"policies-deleted-collection": bypass{
		objects: baseObjects, code: "OverrideRemoved", warning: "would no longer",
		write: command{
			args: []string{"delete", "--raw", "/apis/kuadrant.io/v1/namespaces/INFRA/authpolicies"},
			dry:  []string{"delete", "--raw", "/apis/kuadrant.io/v1/namespaces/INFRA/authpolicies?dryRun=All"},
		},
	},
	"policy-owner": bypass{
		objects: baseObjects, code: "OverrideEvaded", contains: []string{"its new owner"},
		write: patch("INFRA", "authpolicy/gw-auth", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"missing","uid":"5f0d4b1e-0000-4000-8000-000000000000"}]}}`),
	},
	"lower-gate": bypass{
		objects: baseObjects, code: "OverrideWeakened",
		write:    apply(auth("APP", "route-auth", routeRef("toystore"), "when: [{predicate: 'false'}], rules: {authorization: {opa: {}}}")),
		contains: []string{"when of AuthPolicy lower-gate-app/route-auth decides whether rules.authentication.sso has an effect"},
		warning:  "decides whether",
	},
	"lower-gate-before-route": bypass{
		objects: gated, code: "OverrideWeakened",
		write: apply(route(onEdge, byPath)), warning: "decides whether",
	},
	"lower-gate-namespace-label": bypass{
		objects: object("Namespace", "name: APP, labels: {stage: dev}", "{}") + strings.Replace(gated+route(onEdge, byPath), "from: All", "from: Selector, selector: {matchLabels: {stage: prod}}", 1),
		code:    "OverrideWeakened",
		write:   kubectl("label", "--overwrite", "namespace/APP", "stage=prod"), warning: "decides whether",
	},
	"lower-gate-listener-set": bypass{
		objects: strings.Replace(extended, listenerSet, "", 1) + route(extra, byPath) + gatewayOverride + gate, code: "OverrideWeakened",
		write: apply(listenerSet), warning: "decides whether",
	},
	"lower-alternative": bypass{
		objects: baseObjects, code: "OverrideWeakened",
		write:    apply(auth("APP", "route-auth", routeRef("toystore"), "rules: {authentication: {everyone: {anonymous: {}}}}")),
		contains: []string{"rules.authentication.everyone of AuthPolicy lower-alternative-app/route-auth", "rules.authentication.sso"},
		warning:  "is accepted instead of rules.authentication.sso",
	},
	"higher-gate": bypass{
		objects: onRoute, code: "OverrideWeakened",
		write:    apply(auth("INFRA", "above", gatewayRef("edge"), "defaults: {strategy: merge, when: [{predicate: 'false'}]}")),
		contains: []string{"when of AuthPolicy higher-gate-infra/above decides whether rules.authentication.sso has an effect"},
		warning:  "decides whether",
	},
	"higher-alternative": bypass{
		objects: onRoute, code: "OverrideWeakened",
		write:   apply(auth("INFRA", "above", gatewayRef("edge"), "defaults: {strategy: merge, rules: {authentication: {everyone: {anonymous: {}}}}}")),
		warning: "is accepted instead of rules.authentication.sso",
	},
	"beside-gate": bypass{
		objects: baseObjects + auth("INFRA", "beside", gatewayRef("inner"), "defaults: {strategy: merge, when: [{predicate: 'false'}]}"), code: "OverrideWeakened",
		write:   patch("INFRA", "authpolicy/beside", `{"spec":{"targetRef":{"name":"edge"}}}`),
		warning: "decides whether",
	},
	"higher-gate-listener-renamed": bypass{
		objects: onRoute + auth("INFRA", "above", gatewayRef("edge")+", sectionName: plain", "defaults: {strategy: merge, when: [{predicate: 'false'}]}"),
		code:    "OverrideWeakened",
		write:   apply(gateway("edge", onPlain)), warning: "decides whether",
	},
	"higher-gate-uncovered": bypass{
		objects: onRoute + auth("INFRA", "above", gatewayRef("edge"), "defaults: {strategy: merge, when: [{predicate: 'false'}], rules: {authorization: {opa: {}}}}") +
			auth("APP", "shield", routeRef("toystore"), "when: [{predicate: 'true'}], rules: {authorization: {opa: {}}}"),
		code:  "OverrideWeakened",
		write: remove("APP", "authpolicy/shield"), warning: "decides whether",
	},
	"policy-own-gate": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write:   patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"when":[{"predicate":"false"}]}}}`),
		warning: "decides whether",
	},
	"policy-own-alternative": bypass{
		objects: baseObjects, code: "OverrideRemoved",
		write:   patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"everyone":{"anonymous":{}}}}}}}`),
		warning: "is accepted instead of rules.authentication.sso",
	},
}

// gate is a policy of the route that controls whether others have an effect.
var gate = auth("APP", "route-auth", routeRef("toystore"), "when: [{predicate: 'false'}], rules: {authorization: {opa: {}}}")

// gated has the gate before its route exists.
var gated = namespaces + gateway("edge", onHTTP) + gate + gatewayOverride

const overrides = "overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}"
