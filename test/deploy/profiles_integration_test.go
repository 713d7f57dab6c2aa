//go:build integration

package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
)

// profile returns a PolicyProfile of Paint.example.com, with some fields of its
// spec replaced or added.
func profile(t *testing.T, fields string) string {
	t.Helper()
	spec := map[string]any{
		"group": "example.com", "kind": "Paint", "class": "inherited", "targets": map[string]any{"fields": []string{"targetRefs"}},
	}
	require.NoError(t, yaml.Unmarshal([]byte(fields), &spec))
	return marshal(t, map[string]any{
		"apiVersion": "overrule.dev/v1alpha1", "kind": "PolicyProfile", "metadata": map[string]any{"name": "paint"}, "spec": spec,
	})
}

// holdsProfilesToTheirRules applies profiles to a cluster that has the CRD.
func validatesProfiles(t *testing.T, cluster *env.Env) {
	t.Helper()
	for sentence, c := range map[string]struct{ fields, want string }{
		"a minimal profile": {fields: "content: spec"},
		"all levels once": {
			fields: "levels: [Mesh, GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, ServiceNamespace, Service, RouteNamespace, Route, Rule, Backend]"},
		"blocks of an inherited kind": {fields: "blocks: {defaults: [defaults], overrides: [overrides]}"},
		"an order by one field":       {fields: "order: {field: priority, highestFirst: true}"},
		"a kind of Gateway API's own group that is a policy": {
			fields: "group: gateway.networking.k8s.io"},

		"a level twice": {
			"levels: [Gateway, Route, Gateway]", "spec.levels: Invalid value: levels must be unique"},
		"an unknown level": {
			"levels: [Gateway, Pod]", `spec.levels[1]: Unsupported value: "Pod": supported values: "Mesh", "GatewayClass",`},
		"a direct kind with blocks": {
			"class: direct\nblocks: {overrides: [overrides]}",
			"a direct kind has no defaults and overrides: set class to inherited or leave out blocks"},
		"an unknown class": {
			"class: sideways", `spec.class: Unsupported value: "sideways": supported values: "inherited", "direct"`},
		"Pods": {
			`group: ""`, "group must be that of a CustomResourceDefinition, not one of Kubernetes' own"},
		"Deployments": {
			"group: apps", "group must be that of a CustomResourceDefinition, not one of Kubernetes' own"},
		"a built-in group with a dot": {
			"group: rbac.authorization.k8s.io", "group must be that of a CustomResourceDefinition, not one of Kubernetes' own"},
		"Gateways": {
			"kind: Gateway\ngroup: gateway.networking.k8s.io", "kind is one that policies are attached to, not a policy kind"},
		"no kind": {
			`kind: ""`, "spec.kind in body should be at least 1 chars long"},
		"an order by two fields": {
			"order: {field: priority, annotation: example.com/priority}", "spec.order: Invalid value: set one of field and annotation"},
		"an order by nothing": {
			"order: {highestFirst: true}", "spec.order: Invalid value: set one of field and annotation"},
		"an unknown strategy": {
			"strategy: {allowed: [merge, blend]}", `spec.strategy.allowed[1]: Unsupported value: "blend": supported values: "atomic", "merge", "patch"`},
		"an unknown action": {
			"actions: {UnsetOverride: Ignore}", `Unsupported value: "Ignore": supported values: "Deny", "Warn", "Audit"`},
		"an unknown sameTarget": {
			"sameTarget: newestWins", `spec.sameTarget: Unsupported value: "newestWins"`},
		"a field of a route that is not below its spec": {
			"fields: [{rule: timeout, route: metadata.name}]", `spec.fields[0].route in body should match '^spec\..+'`},
		"a misspelled field": {
			"blcoks: {}", `unknown field "spec.blcoks"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := cluster.Apply(profile(t, c.fields), "--dry-run=server", "--validate=strict")
			if c.want == "" {
				quiet(t, got)
				return
			}
			assert.NotZero(t, got.Code, got.Stdout)
			assert.Contains(t, got.Stderr, c.want)
		})
	}
}
