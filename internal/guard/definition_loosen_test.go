package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// readBy is a world in which the policies of some objects are read by other
// profiles.
func readBy(t *testing.T, v *snapshot.View, profile, objects string) *snapshot.View {
	t.Helper()
	w := world(t, docs(profile, objects))
	next := v.WithKinds(w.Kinds())
	for _, k := range w.Kinds() {
		for p := range w.Policies(k.Ref()) {
			next = next.With(snapshot.Put(p))
		}
	}
	return next
}

// A profile that protects overrides less is a removal of those that hold, though
// all of them hold after it as before.
func TestProfilesProtectOverridesLess(t *testing.T) {
	const full = lockSpec + "\ngates: [gate]\nalternatives: [ways]"
	const less = "OverrideRemoved ways.key Lock infra/top: 2 paths" // golden: in which way
	const lessOwn = "OverrideRemoved ways.key Lock app/own: 2 paths"
	const all, one = full + "\nrouteOverridesBind: AllNamespaces", full + "\nrouteOverridesBind: SameNamespace"
	tests := map[string]struct {
		objects, was, now string
		owner             string
		want              []string
	}{
		"a removal is a warning":              {base(lockTop(byKey)), full, full + "\nactions: {OverrideRemoved: Warn}", "", []string{less + ", OverrideRemoved, Warn"}},
		"an evasion is a warning":             {base(lockTop(byKey)), full, full + "\nactions: {OverrideEvaded: Warn}", "", []string{less + ", OverrideEvaded, Warn"}},
		"without gates and alternatives":      {base(lockTop(byKey)), full, lockSpec, "", []string{less}},
		"policies may be higher":              {base(lockTop(byKey)), full, full + "\norder: {field: priority}", "", []string{less + ", (order)"}},
		"its paths end above the routes":      {base(lockTop(byKey)), full, full + "\nlevels: [Gateway]", "", []string{less + ", (levels)"}},
		"an override that is not met":         {base(lockTop("overrides: {when: 'has(spec.other)', ways: {key: 1}}")), full, lockSpec + "\nalternatives: [ways]", "", []string{less}},
		"the same":                            {base(lockTop(byKey)), full, full, "", nil},
		"a stricter one":                      {base(lockTop(byKey)), lockSpec + "\nactions: {OverrideEvaded: Warn}", full, "", nil},
		"no override holds":                   {base(lockTop("defaults: {ways: {key: 1}}")), full, lockSpec, "", nil},
		"an override that holds nowhere":      {base(lockOwn("ways: {key: 2}"), locked("infra", "top", "targetRefs: [{kind: Gateway, name: none}]\n", byKey)), full, lockSpec, "", nil},
		"an override that a higher one beats": {base(lockTop(byKey), lockOwn("overrides: {ways: {key: 2}}")), full, lockSpec, "", []string{less}},
		"the profile gets an owner, and a built-in one that protects less is used then": {
			base(lockTop(byKey)), full, lockSpec, "ConfigMap infra/x", []string{less},
		},
		"overrides of routes bind one namespace": {base(lockTop(byKey), lockOwn("overrides: {ways: {other: 1}}")), all, one, "", []string{strings.Replace(lessOwn, "key", "other", 1)}},
		"likewise, which is the default":         {base(lockOwn(byKey)), all, full, "", []string{lessOwn}},
		"likewise, and another gate is missing":  {base(lockTop(byKey), lockOwn("overrides: {ways: {other: 1}}")), all, strings.Replace(one, "\ngates: [gate]", "", 1), "", []string{less, strings.Replace(lessOwn, "key", "other", 1)}},
		"likewise, no route has an override":     {base(lockTop(byKey)), all, one, "", nil},
		"overrides of routes bind all":           {base(lockTop(byKey), lockOwn("overrides: {ways: {other: 1}}")), one, all, "", nil},
		"the profile gets an owner, and a built-in one by which they bind one namespace is used then": {
			base(lockOwn(byKey)), all, full, "ConfigMap infra/x", []string{lessOwn},
		},
		"removals were warnings before, too": {
			base(lockTop(byKey)), full + "\nactions: {OverrideRemoved: Warn}", full + "\nactions: {OverrideRemoved: Warn, OverrideEvaded: Warn}", "",
			[]string{"Warn " + less + ", OverrideEvaded, Warn"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(worlds.ProfileDoc("Lock", test.was), test.objects))
			after := readBy(t, v, worlds.ProfileDoc("Lock", test.now), test.objects)
			findingsFor := func(user string) []string {
				g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{after: after}, Permissions: bossAndDev()}
				change := guard.Change{Operation: guard.Update, Before: profile("lock", nil), After: profile("lock", nil), Owner: test.owner, User: userOf(user)}
				ev, err := g.Evaluate(t.Context(), v, change, nil)
				require.NoError(t, err)
				return findingsOf(t, ev, "OverrideRemoved")
			}
			var denials, warnings []string
			for _, what := range test.want {
				what, reported := strings.CutPrefix(what, "Warn ")
				warnings = append(warnings, "Warn "+what)
				if reported {
					denials = append(denials, "Warn "+what)
					continue
				}
				denials = append(denials, "Deny "+what)
			}
			assert.Equal(t, denials, findingsFor("dev"))
			assert.Equal(t, warnings, findingsFor("boss"))
		})
	}
}
