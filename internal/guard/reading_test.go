package guard_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// inVersion is the definition of Dye with one version.
func inVersion(edit func(*apiextensionsv1.CustomResourceDefinition)) *policykind.Definition {
	d := &policykind.Definition{}
	d.Name, d.Spec.Group, d.Spec.Names.Kind = "dyes.example.com", "example.com", "Dye"
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
	if edit != nil {
		edit(&d.CustomResourceDefinition)
	}
	return d
}

// ofDye returns a view that knows the definition of Dye.
func ofDye(v *snapshot.View) *snapshot.View {
	return v.WithKindConfig(v.KindConfig().With(snapshot.Put(inVersion(nil))))
}

func dyeProfile(v *snapshot.View) *policykind.Profile { return v.KindConfig().Profile("dye") }

// SEMANTICS section 8: a write that changes how stored policies are read needs the right to
// override all policies of the kind as soon as one of them has overrides, and no other does.
func TestReadingOfOverrides(t *testing.T) {
	const (
		onTwo     = "OverrideEvaded: Dye.example.com, 2 paths, Dye"
		permitted = "OverrideEvaded: Dye.example.com, 2 paths"
	)
	top := policyDoc("Dye", "infra", "top", toGateway+"overrides: {a: 1}")
	was := inVersion(nil)
	in := func(policies ...string) *snapshot.View {
		return ofDye(world(t, docs(append([]string{dye, gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g"),
			policyDoc("Paint", "infra", "other", toGateway+"overrides: {strategy: patch, b: 1}")}, policies...)...)))
	}
	stored := in(top)
	deleted := guard.Change{Operation: guard.Delete, Before: dyeProfile(stored)}
	to := func(doc string) guard.Change {
		return guard.Change{Operation: guard.Update, Before: dyeProfile(stored), After: dyeProfile(world(t, doc))}
	}
	edited := func(edit func(*apiextensionsv1.CustomResourceDefinition)) guard.Change {
		return guard.Change{Operation: guard.Update, Before: was, After: inVersion(edit)}
	}
	owned := edited(nil)
	owned.Owner = "ConfigMap infra/x"
	nowhere := in(policyDoc("Dye", "infra", "top", "targetRefs: [{kind: Gateway, name: none}]\noverrides: {a: 1}"))
	constrained := in(policyDoc("Dye", "infra", "top", toGateway+"a: 1")).With(snapshot.Put(readConstraintOf(t, "c", "Dye", "validations: [{expression: 'true', message: x}]")))
	for name, c := range map[string]struct {
		before *snapshot.View
		change guard.Change
		want   string // the finding, "" for none
		may    string // for a writer with the right
	}{
		"a definition is deleted":           {stored, guard.Change{Operation: guard.Delete, Before: was}, onTwo, permitted},
		"a definition is written as it was": {before: stored, change: edited(nil)},
		"a definition gets an annotation": {before: stored, change: edited(func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Annotations = map[string]string{"a": "b"}
		})},
		"a definition has another storage version": {stored, edited(func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Versions[0].Storage = false
		}), onTwo, permitted},
		"a profile reads no overrides":   {stored, to(worlds.ProfileDoc("Dye", "strategy: {allowed: [merge]}")), onTwo, permitted},
		"a profile is stricter":          {stored, to(dye + "\n  actions: {Conflicted: Deny}"), onTwo, permitted},
		"a profile reads the same":       {before: stored, change: to(dye)},
		"a profile is deleted":           {stored, deleted, onTwo, permitted},
		"no policy is stored":            {before: in(), change: deleted},
		"no stored policy has overrides": {before: ofDye(world(t, docs(worlds.ProfileDoc("Dye", "blocks: {defaults: [defaults], overrides: [overrides]}"), base(policyDoc("Dye", "infra", "top", toGateway+"defaults: {a: 1}"))))), change: deleted},
		"a constraint holds":             {constrained, deleted, "OverrideEvaded: Dye.example.com, Dye", "OverrideEvaded: Dye.example.com"},
		"its overrides hold nowhere":     {nowhere, deleted, "OverrideEvaded: Dye.example.com, 0 paths, Dye", "OverrideEvaded: Dye.example.com, 0 paths"},
		"a definition gets an owner":     {stored, owned, "OverrideEvaded: Dye.example.com, 2 paths, CustomResourceDefinition dyes.example.com, ConfigMap infra/x, Dye", "OverrideEvaded: Dye.example.com, 2 paths, CustomResourceDefinition dyes.example.com, ConfigMap infra/x"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, as := range []struct{ user, want string }{{"dev", "Deny " + c.want}, {"boss", "Warn " + c.may}} {
				c.change.User = userOf(as.user)
				g := &guard.Guard{Engine: effective.NewEngine(), Permissions: bossAndDev()}
				ev, err := g.Evaluate(t.Context(), c.before, c.change, nil)
				require.NoError(t, err)
				if c.want == "" {
					assert.Empty(t, findingsOf(t, ev, "Override"), as.user)
				} else {
					assert.Equal(t, []string{as.want}, findingsOf(t, ev, "Override"), as.user)
				}
			}
		})
	}
}

// The right to override the policies of their namespaces is not enough.
func TestReadingNeedsRightOnKind(t *testing.T) {
	v := world(t, docs(dye, base(policyDoc("Dye", "infra", "top", toGateway+"overrides: {a: 1}"))))
	may := &owners{may: map[string][]string{"dev": {"infra/top"}}}
	g := &guard.Guard{Engine: effective.NewEngine(), Permissions: may}
	ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: dyeProfile(v), User: userOf("dev")}, nil)
	require.NoError(t, err)
	assert.True(t, ev.Denied())
	assert.Equal(t, []string{"Dye"}, may.asked)
	assert.Equal(t, api.Changes{Paths: 2, Namespaces: 1}, ev.Changes, "all its paths may change")
}

// Deletions by the garbage collector are never denied.
func TestReadingByGarbageCollector(t *testing.T) {
	v := world(t, docs(dye, base(policyDoc("Dye", "infra", "top", toGateway+"overrides: {a: 1}"))))
	g := &guard.Guard{Engine: effective.NewEngine(), Permissions: bossAndDev()}
	ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: dyeProfile(v), GarbageCollected: true}, nil)
	require.NoError(t, err)
	assert.False(t, ev.Denied())
	assert.Len(t, ev.Audits, 1)
}

// A write that changes how many effective policies are computed is acknowledged as any other.
func TestReadingBlastRadius(t *testing.T) {
	v := world(t, base(gatewayPolicy("defaults: {strategy: patch, a: 1}")))
	c := guard.Change{Operation: guard.Delete, Before: v.KindConfig().Profile("paint")}
	for limit, want := range map[int][]string{1: {"Deny BlastRadius"}, 2: nil} {
		g := &guard.Guard{Engine: effective.NewEngine(), BlastRadius: limit}
		ev, err := g.Evaluate(t.Context(), v, c, nil)
		require.NoError(t, err)
		assert.Equal(t, want, codes(t, ev))
	}
}

func TestSecondDefinitionOfKindIsDenied(t *testing.T) {
	d := &policykind.Definition{}
	d.Name, d.Spec.Group, d.Spec.Names.Kind = "others.example.com", "example.com", "Paint"
	g := &guard.Guard{Engine: effective.NewEngine()}
	ev, err := g.Evaluate(t.Context(), typed(t, world(t, base())), guard.Change{Operation: guard.Create, After: d}, nil)
	require.NoError(t, err)
	assert.True(t, ev.Denied())
	assert.Equal(t, []string{
		"Deny NotRead: Paint.example.com, paints.example.com",
	}, findings(t, ev))
}
