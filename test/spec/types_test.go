package spec

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/tables"
)

// typed returns a world of one gateway, one route with one rule, a kind that
// controls fields of the rule, and a policy on the gateway.
func typed(t *testing.T, profile, rule, block, content string) *world {
	t.Helper()
	return read(t, fmt.Sprintf(`
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: keypolicies}
spec:
  group: example.com
  kind: KeyPolicy
  class: inherited
  levels: [Gateway, Route, Rule]
  targets: {fields: [targetRef]}
  blocks: {defaults: [defaults], overrides: [overrides]}
  strategy: {allowed: [patch]}
%s
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route}
spec:
  parentRefs: [{name: gateway}]
  rules: [%s]
---
apiVersion: example.com/v1
kind: KeyPolicy
metadata: {name: policy}
spec:
  targetRef: {kind: Gateway, name: gateway}
  %s: %s
`, profile, rule, block, content), "gateway")
}

const keyProfile = `  fields: [{rule: key, route: "spec.rules[*].key"}]
  whole: [key]`

// The table under "Merging into existing spec fields" of both older texts, and
// the text around it.
func TestTypes(t *testing.T) {
	tests := tables.Read[map[string]struct{ Object, Policy, Overridden, Defaulted string }](t, "testdata/tables/types.yaml")
	for name, test := range tests {
		for block, want := range map[string]string{"overrides": test.Overridden, "defaults": test.Defaulted} {
			t.Run(name+", "+block, func(t *testing.T) {
				w := typed(t, keyProfile, "{key: "+test.Object+"}", block, "{key: "+test.Policy+"}")
				item := w.at(t, "gateway > route")
				assert.Equal(t, obj{"key": value(t, want)}, item.Spec)
				assert.Equal(t, value(t, want), ruleOf(item)["key"])
				state := api.Enforced
				if want != test.Policy {
					state = api.Overridden
				}
				assert.Equal(t, state, w.outcomes["policy"].State)
			})
		}
	}
}

// value decodes a value; integers stay integers.
func value(t *testing.T, text string) (out any) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// RFC 7386, as in SEMANTICS section 3: a null in a higher override removes the
// existing value.
func TestNullRemovesAField(t *testing.T) {
	w := typed(t, keyProfile, `{name: one, key: foo}`, "overrides", "{key: null}")
	item := w.at(t, "gateway > route")
	assert.Equal(t, obj{}, item.Spec)
	assert.Equal(t, obj{"name": "one"}, ruleOf(item))
	assert.Equal(t, api.Enforced, w.outcomes["policy"].State)
}

// ruleOf returns the one rule of the effective route.
func ruleOf(item api.EffectivePolicy) obj {
	rule := maps.Clone(item.Route.Spec["rules"].([]any)[0].(obj))
	delete(rule, "matches") // a default of the API server
	return rule
}

// "If an implementation was merging this configuration into an existing object
// that contained the same fields, it should merge the fields at a scalar
// level."
func TestMergeIntoExistingFields(t *testing.T) {
	const profile = `  fields: [{rule: cdn, route: "spec.rules[*].cdn"}]`
	const object = `{cdn: {enabled: false, cachePolicy: {includeHost: false}}}`
	const policy = `{cdn: {cachePolicy: {includeHost: true, includeProtocol: true}}}`
	t.Run("defaulted if they were not specified in the object being controlled", func(t *testing.T) {
		w := typed(t, profile, object, "defaults", policy)
		want := obj{"cdn": obj{"enabled": false, "cachePolicy": obj{"includeHost": false, "includeProtocol": true}}}
		assert.Equal(t, want, w.at(t, "gateway > route").Spec)
		assert.Equal(t, want, ruleOf(w.at(t, "gateway > route")))
		hasState("policy", api.PartiallyEnforced, "route")(t, w)
	})
	t.Run("for overrides, the values of the innermost scalar fields should overwrite the scalar fields in the affected object", func(t *testing.T) {
		w := typed(t, profile, object, "overrides", policy)
		want := obj{"cdn": obj{"enabled": false, "cachePolicy": obj{"includeHost": true, "includeProtocol": true}}}
		assert.Equal(t, want, w.at(t, "gateway > route").Spec)
		assert.Equal(t, want, ruleOf(w.at(t, "gateway > route")))
		hasState("policy", api.Enforced)(t, w)
	})
	t.Run("the object keeps what no policy speaks of", func(t *testing.T) {
		w := typed(t, profile, `{name: one, cdn: {region: eu}}`, "overrides", policy)
		assert.Equal(t, obj{"name": "one", "cdn": obj{"region": "eu", "cachePolicy": obj{"includeHost": true, "includeProtocol": true}}},
			ruleOf(w.at(t, "gateway > route")))
	})
}

// "In the case that the field in the Policy affects a struct that is a member
// of a list, each existing item in the list in the affected object should have
// each of its fields compared to the corresponding fields in the Policy."
func TestMembersOfLists(t *testing.T) {
	const profile = `  fields:
    - {rule: attempts, route: "spec.rules[*].filters[*].retryFilter.attempts"}
    - {rule: retryOn, route: "spec.rules[*].filters[*].retryFilter.retryOn"}`
	const filters = `{filters: [{retryFilter: {attempts: 9}}, {type: URLRewrite}, {retryFilter: {retryOn: ["500"]}}, {retryFilter: {attempts: 8, retryOn: ["501"]}}, {retryFilter: {}}]}`
	const policy = `{attempts: 2, retryOn: ["503"]}`
	retry := func(attempts int64, on string) obj { return obj{"attempts": attempts, "retryOn": []any{on}} }
	tests := map[string]map[string]obj{
		"defaults": {
			"filters[0]": retry(9, "503"), "filters[2]": retry(2, "500"), "filters[3]": retry(8, "501"), "filters[4]": retry(2, "503"),
		},
		"overrides": {
			"filters[0]": retry(2, "503"), "filters[2]": retry(2, "503"), "filters[3]": retry(2, "503"), "filters[4]": retry(2, "503"),
		},
	}
	for block, items := range tests {
		t.Run(block, func(t *testing.T) {
			w := typed(t, profile, filters, block, policy)
			assert.Len(t, w.items, len(items), "an item without the struct is not affected: %v", w.paths())
			for member, want := range items {
				item := w.at(t, "gateway > route > "+member)
				assert.Equal(t, want, item.Spec, member)
				var i int
				_, err := fmt.Sscanf(member, "filters[%d]", &i)
				require.NoError(t, err)
				shown := ruleOf(item)["filters"].([]any)
				assert.Len(t, shown, 5)
				assert.Equal(t, obj{"retryFilter": want}, shown[i], member)
			}
			state := api.PartiallyEnforced
			if block == "overrides" {
				state = api.Enforced
			}
			assert.Equal(t, state, w.outcomes["policy"].State)
		})
	}
}
