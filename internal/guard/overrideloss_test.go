package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// dye is a kind whose policies may be on everything from the class to the
// backends.
var dye = worlds.ClassProfileDoc("inherited", "Dye", `targets: {fields: [targetRefs], unnamedRules: true, namespaces: free, classFrom: ["*"]}
levels: [GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, RouteNamespace, Route, Rule, Backend]
shortPaths: true
strategy: {allowed: [merge]}
blocks: {overrides: [overrides]}`)

func dyed(namespace, name, targets string) string {
	return policyDoc("Dye", namespace, name, "targetRefs: ["+targets+"]\noverrides: {a: 1}")
}

// rereading is what rereads the policies where a profile or a definition is
// written.
type rereading struct {
	known
	after *snapshot.View
}

func (r rereading) ViewAfterKindChange(_ context.Context, v *snapshot.View, _, _ snapshot.Object) (*snapshot.View, error) {
	if r.after == nil {
		return v, r.err
	}
	return r.after, r.err
}

// What says how policies are read is evaluated by what it does to them.
func TestProfilesAndDefinitionsRemoveOverrides(t *testing.T) {
	objects := docs(gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g"), policyDoc("Dye", "infra", "top", toGateway+"overrides: {a: 1}"),
		policyDoc("Paint", "infra", "other", toGateway+"overrides: {strategy: patch, b: 1}"))
	before := world(t, docs(dye, objects))
	without := before.WithKinds(before.Kinds()[1:]) // Dye is the first of them
	reads := func(profile string) *snapshot.View {
		w := world(t, docs(profile, objects))
		v := before.WithKinds(w.Kinds())
		for _, k := range w.Kinds() {
			for p := range w.Policies(k.Ref()) {
				v = v.With(snapshot.Put(p))
			}
		}
		return v
	}
	definition := &policykind.Definition{}
	definition.Name = "dyes.example.com"
	blind := worlds.ProfileDoc("Dye", "strategy: {allowed: [merge]}")
	paths := worlds.ProfileDoc("Dye", "strategy: {allowed: [merge]}\nlevels: [Gateway, Route]\nblocks: {overrides: [overrides]}")
	tests := map[string]struct {
		change guard.Change
		after  *snapshot.View
		want   []string
	}{
		"a definition is deleted": {
			guard.Change{Operation: guard.Delete, Before: definition}, without,
			evaded("Dye infra/top", "CustomResourceDefinition dyes.example.com"),
		},
		"a definition loses its label": {guard.Change{Operation: guard.Update, Before: definition, After: definition}, without, evaded("Dye infra/top")},
		"a definition is edited":       {guard.Change{Operation: guard.Update, Before: definition, After: definition}, nil, nil},
		"a profile reads no overrides": {guard.Change{Operation: guard.Create, After: profile("dye", nil)}, reads(blind), evaded("Dye infra/top")},
		"a profile reads the same":     {guard.Change{Operation: guard.Update, Before: profile("dye", nil), After: profile("dye", nil)}, reads(dye), nil},
		"a profile is deleted":         {guard.Change{Operation: guard.Delete, Before: profile("dye", nil)}, without, evaded("Dye infra/top", "PolicyProfile dye")},
		"a profile has other paths": {guard.Change{Operation: guard.Create, After: profile("dye", nil)}, reads(paths), []string{
			"OverrideRemoved a Dye infra/top: 2 paths, shortPaths",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			findingsFor := func(user string) []string {
				g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{after: test.after}, Permissions: bossAndDev()}
				test.change.User = userOf(user)
				ev, err := g.Evaluate(t.Context(), before, test.change, nil)
				require.NoError(t, err)
				return findingsOf(t, ev, "Override")
			}
			var denials, warnings []string
			for _, what := range test.want {
				denials, warnings = append(denials, "Deny "+what), append(warnings, "Warn "+what)
			}
			assert.Equal(t, denials, findingsFor("dev"))
			assert.Equal(t, warnings, findingsFor("boss"))
		})
	}
}

func TestRereadError(t *testing.T) {
	down := errors.New("no answer")
	g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{known: known{err: down}}}
	definition := &policykind.Definition{}
	definition.Name = "dyes.example.com"
	_, err := g.Evaluate(t.Context(), world(t, base()), guard.Change{Operation: guard.Delete, Before: definition}, nil)
	require.ErrorIs(t, err, down)
	require.EqualError(t, err, "reread policies for CustomResourceDefinition dyes.example.com: no answer")
}

// Evaluating losses counts against the budget as all else does.
func TestOverrideLossBudget(t *testing.T) {
	costly := policyDoc("Paint", "infra", "of-h", "targetRefs: [{kind: Gateway, name: h}]\noverrides: {strategy: patch, b: 1, when: '[1, 2, 3].all(x, x > 0)'}")
	v := world(t, docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g", "h"), at("g", ""), costly))
	g, h := v.Gateway("infra", "g"), v.Gateway("infra", "h")
	for name, c := range map[string]guard.Change{
		"where the traffic goes":        {Operation: guard.Delete, Before: g},
		"what goes with a new owner":    {Operation: guard.Update, Before: g, After: g, Owner: "ConfigMap infra/x"},
		"the paths of the object after": {Operation: guard.Create, After: h},
	} {
		t.Run(name, func(t *testing.T) {
			ev, err := (&guard.Guard{Engine: effective.NewEngine(), Budget: 1}).Evaluate(t.Context(), v, c, nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
		})
	}
	ev, err := (&guard.Guard{Engine: effective.NewEngine(), Budget: 1}).Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: h}, nil)
	require.NoError(t, err)
	assert.NotContains(t, codes(t, ev), "Deny TooMuch", "what the paths before cost is not for the writer to pay")
}
