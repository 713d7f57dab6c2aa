package effective_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/merge"
)

// boundScene has a route of three rules with limits of its own and of its gateway,
// which has two listeners.
const boundScene = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: istio
  listeners:
    - {name: all, port: 80, protocol: HTTP, hostname: "*.acme.com", allowedRoutes: {namespaces: {from: All}}}
    - {name: dolls, port: 80, protocol: HTTP, hostname: dolls.toystore.acme.com, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: toystore}
spec:
  parentRefs: [{namespace: infra, name: edge}]
  hostnames: ["*.toystore.acme.com"]
  rules:
    - matches: [{path: {value: /toys}, method: GET}, {path: {value: /toys}, method: POST}]
    - matches: [{path: {value: /assets/}}]
    - matches: [{path: {value: /orders}}]
---
apiVersion: kuadrant.io/v2beta1
kind: RateLimitPolicy
metadata: {namespace: infra, name: gw}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  defaults:
    strategy: merge
    limits:
      base: {rates: [{limit: 5, unit: second}]}
---
apiVersion: kuadrant.io/v2beta1
kind: RateLimitPolicy
metadata: {namespace: app, name: own}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits:
    get: {rates: [{limit: 5, unit: second}], triggers: [{matches: [{path: {value: /toys}, method: GET}]}]}
    assets:
      rates: [{limit: 1000, unit: day}]
      triggers: [{matches: [{path: {value: /assets/}}], hostnames: [games.toystore.acme.com]}]
`

var (
	gwLimits  = api.Ref{Group: "kuadrant.io", Kind: "RateLimitPolicy", Namespace: "infra", Name: "gw"}
	ownLimits = api.Ref{Group: "kuadrant.io", Kind: "RateLimitPolicy", Namespace: "app", Name: "own"}
)

// eachOf calls visit with each effective policy of a scene.
func eachOf(t *testing.T, scene string, visit func(*effective.Effective)) {
	t.Helper()
	set, err := manifest.Read([]string{"-"}, strings.NewReader(scene))
	require.NoError(t, err)
	kinds := manifest.NewKinds(nil)
	v, err := set.View(kinds, "app")
	require.NoError(t, err)
	budget := effective.NewBudget(t.Context(), math.MaxUint64)
	require.NoError(t, effective.NewEngine().Walk(v, effective.Scope{All: true}, false, budget, func(e *effective.Effective) error {
		visit(e)
		return nil
	}))
}

// bindingsOf explains a rule, "" for all, on each path: "listener rule-N".
func bindingsOf(t *testing.T, scene, rule string) map[string][]api.Binding {
	t.Helper()
	var filter *merge.Name
	if rule != "" {
		name, err := merge.ParseName(rule)
		require.NoError(t, err)
		filter = &name
	}
	out := make(map[string][]api.Binding)
	eachOf(t, scene, func(e *effective.Effective) {
		x, _ := explain.Explain(e, filter)
		out[e.Path.Listener.Name+" "+e.Path.Route.RuleName(e.Path.Rule)] = x.Bindings
	})
	return out
}

func TestExplainBindings(t *testing.T) {
	base := api.Binding{Rule: "limits.base", From: gwLimits, Block: "defaults", State: api.BindingBound}
	shadowed := api.Binding{Rule: "limits.base", From: gwLimits, Block: "defaults", State: api.BindingShadowed, ShadowedBy: "limits.assets"}
	assets := api.Binding{
		Rule: "limits.assets", From: ownLimits, Block: "bare", State: api.BindingBound,
		By: []string{"PathPrefix /assets/"}, Hostnames: []string{"games.toystore.acme.com"},
	}
	get := api.Binding{
		Rule: "limits.get", From: ownLimits, Block: "bare", State: api.BindingShadowed, ShadowedBy: "limits.base",
		By: []string{"GET PathPrefix /toys"}, AlsoMatches: []string{"POST PathPrefix /toys"},
	}
	forGames := api.Binding{Rule: "limits.assets", From: ownLimits, Block: "bare", State: api.BindingUnmatched, Hostnames: []string{"games.toystore.acme.com"}}
	noAssets := api.Binding{Rule: "limits.assets", From: ownLimits, Block: "bare", State: api.BindingUnmatched}
	noGet := api.Binding{Rule: "limits.get", From: ownLimits, Block: "bare", State: api.BindingUnmatched}
	assert.Equal(t, map[string][]api.Binding{
		"all rule-1":   {noAssets, base, get},
		"all rule-2":   {assets, shadowed, noGet},
		"all rule-3":   {noAssets, base, noGet},
		"dolls rule-1": {noAssets, base, get},
		"dolls rule-2": {forGames, base, noGet}, // no request for games comes by this listener
		"dolls rule-3": {noAssets, base, noGet},
	}, bindingsOf(t, boundScene, ""))
	assert.Equal(t, []api.Binding{assets, shadowed}, bindingsOf(t, boundScene, "limits.assets")["all rule-2"], "what it is bound in place of, too")
	assert.Equal(t, []api.Binding{noGet}, bindingsOf(t, boundScene, "get")["all rule-2"])
}

func TestOnlyLimitsInForceBind(t *testing.T) {
	scene := strings.Replace(boundScene, "defaults:\n    strategy: merge", "overrides:\n    strategy: atomic", 1)
	for path, got := range bindingsOf(t, scene, "") {
		assert.Equal(t, []api.Binding{{Rule: "limits.base", From: gwLimits, Block: "overrides", State: api.BindingBound}}, got, path)
	}
}

func TestNoBindings(t *testing.T) {
	only := func(kind, spec string) string {
		return boundScene[:strings.Index(boundScene, "---\napiVersion: kuadrant.io/v2beta1")] +
			"---\napiVersion: kuadrant.io/v1\nkind: " + kind + "\nmetadata: {namespace: app, name: own}\n" +
			"spec:\n  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}\n  " + spec + "\n"
	}
	for name, scene := range map[string]string{
		"limits of another form":    only("RateLimitPolicy", "limits: {a: {rates: [{limit: 5, window: 10s}], counters: [{expression: auth.identity.username}]}}"),
		"a kind that does not bind": only("AuthPolicy", "rules: {authentication: {a: {triggers: []}}}"),
		"a limit that is null":      only("RateLimitPolicy", "limits: {a: null}"),
	} {
		t.Run(name, func(t *testing.T) {
			all := bindingsOf(t, scene, "")
			require.Len(t, all, 6)
			for path, got := range all {
				assert.Empty(t, got, path)
			}
		})
	}
}
