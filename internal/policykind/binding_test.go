package policykind_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

// binding sets the binding of the limits of Paint.
func binding(rules, version string) func(*api.PolicyProfileSpec) {
	return func(p *api.PolicyProfileSpec) {
		p.Rules = []string{"limits.*", "when"}
		p.Blocks.When = ""
		p.Binding = &api.RuleBinding{Rules: rules, Version: version}
	}
}

func TestCompileInvalidBinding(t *testing.T) {
	short := func(p *api.PolicyProfileSpec) {
		binding("limits.*", "v2")(p)
		p.Levels = []api.LevelName{api.LevelGateway, api.LevelRoute}
	}
	for name, c := range map[string]struct {
		edit func(*api.PolicyProfileSpec)
		want string
	}{
		"an invalid path":       {binding("limits..*", "v2"), `spec.binding.rules: Invalid value: "limits..*"`},
		"not one of spec.rules": {binding("rates.*", "v2"), `spec.binding.rules: Invalid value: "rates.*"`},
		"no version":            {binding("limits.*", ""), "spec.binding.version: Required value"},
		"no level Rule":         {short, "spec.binding: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policykind.Compile(paint(c.edit), policykind.Builtin)
			for _, got := range messages.Fields(t, err) {
				assert.Equal(t, c.want, got)
			}
		})
	}
}

func TestBinds(t *testing.T) {
	k := compiled(t, binding("limits.*", "v2"))
	for text, want := range map[string]string{"limits.a": "a", `limits["a.b"]`: "a.b", "limits.a.rates": "", "limits": "", "when": "", "rules.a": ""} {
		key, err := merge.ParseKey(text)
		require.NoError(t, err)
		name, ok := k.Binds(key)
		assert.Equal(t, want, name, text)
		assert.Equal(t, want != "", ok, text)
	}
	key, err := merge.ParseKey("limits.a")
	require.NoError(t, err)
	_, ok := compiled(t, nil).Binds(key)
	assert.False(t, ok, "no rule binds without spec.binding")
}

// limits reads a policy of a version of RateLimitPolicy.
func limits(t *testing.T, version, spec string) *policykind.Policy {
	t.Helper()
	o := object(t, "apiVersion: kuadrant.io/"+version+"\nkind: RateLimitPolicy\nmetadata: {namespace: app, name: p}")
	o["spec"] = object(t, "targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}\n"+spec)
	return builtin(t, "RateLimitPolicy").Read(o, created)
}

func TestLimitsAreDetectedByVersionAndForm(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Version, Spec string
		Binds         bool
		Wrong         []string
	}](t, "testdata/tables/limits-are-detected-by-version-and-form.yaml") {
		t.Run(name, func(t *testing.T) {
			p := limits(t, c.Version, c.Spec)
			assert.Equal(t, c.Binds, p.Binds)
			if c.Wrong == nil {
				require.NoError(t, p.Invalid)
				return
			}
			require.Error(t, p.Invalid)
			for _, place := range c.Wrong {
				assert.ErrorContains(t, p.Invalid, place)
			}
		})
	}
}

// SEMANTICS section 3: null replaces a higher default, or removes a rule.
func TestNullLimitIsARule(t *testing.T) {
	p := limits(t, "v1", "limits: {a: null}")
	require.NoError(t, p.Invalid)
	assert.Equal(t, []string{"bare atomic", "  limits.a=<nil>"}, blocksOf(p))
}

func TestOtherKindsDoNotBind(t *testing.T) {
	for _, kind := range []string{"AuthPolicy", "TokenRateLimitPolicy"} {
		p := spec(t, builtin(t, kind), "targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}\nlimits: {a: {triggers: [], rates: [{limit: 0, unit: second}]}}")
		require.NoError(t, p.Invalid)
		assert.False(t, p.Binds, kind)
	}
}

// A limit from a file is defaulted like a stored one, in every block. Limits of another
// form, and the object, are not changed.
func TestLimitsAreDefaulted(t *testing.T) {
	const (
		short = "{rates: [{limit: 5, unit: second}], triggers: [{matches: [{path: {value: /toys}, headers: [{name: b, value: c}]}]}]}"
		full  = "{rates: [{limit: 5, unit: second, duration: 1}], triggers: [{matches: [{path: {type: PathPrefix, value: /toys}, headers: [{name: b, value: c, type: Exact}]}]}]}"
		other = "{rates: [{limit: 5, window: 10s}]}"
	)
	blocks := func(limit string) string {
		return "defaults: {limits: {a: " + limit + ", b: " + other + "}}\noverrides: {limits: {c: " + limit + "}}"
	}
	for _, version := range []string{"v1", "v2beta1"} {
		text := blocks
		if version == "v2beta1" { // which has one form alone
			text = func(limit string) string { return strings.Replace(blocks(limit), ", b: "+other, "", 1) }
		}
		stored, file := limits(t, version, text(full)), limits(t, version, text(short))
		require.NoError(t, file.Invalid, version)
		assert.Equal(t, blocksOf(stored), blocksOf(file), version)
	}
	o := object(t, "apiVersion: kuadrant.io/v2beta1\nkind: RateLimitPolicy\nmetadata: {namespace: app, name: p}\nspec: {limits: {a: "+short+"}}")
	builtin(t, "RateLimitPolicy").Read(o, created)
	assert.Equal(t, object(t, "apiVersion: kuadrant.io/v2beta1\nkind: RateLimitPolicy\nmetadata: {namespace: app, name: p}\nspec: {limits: {a: "+short+"}}"), o)
}
