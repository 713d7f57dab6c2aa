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
	less := func(how string) []string {
		return []string{"OverrideRemoved: override ways.key of Lock infra/top, which applies on 2 paths, would be less protected: " + how}
	}
	tests := map[string]struct {
		objects, was, now string
		owner             string
		want              []string
	}{
		"a removal is a warning":              {base(lockTop(byKey)), full, full + "\nactions: {OverrideRemoved: Warn}", "", less("the action of OverrideRemoved would be Warn")},
		"an evasion is a warning":             {base(lockTop(byKey)), full, full + "\nactions: {OverrideEvaded: Warn}", "", less("the action of OverrideEvaded would be Warn")},
		"without gates and alternatives":      {base(lockTop(byKey)), full, lockSpec, "", less("gate gate would be removed; alternatives would not begin with ways")},
		"policies may be higher":              {base(lockTop(byKey)), full, full + "\norder: {field: priority}", "", less("policies would be read differently (order)")},
		"its paths end above the routes":      {base(lockTop(byKey)), full, full + "\nlevels: [Gateway]", "", less("policies would be read differently (levels)")},
		"an override that is not met":         {base(lockTop("overrides: {when: 'has(spec.other)', ways: {key: 1}}")), full, lockSpec + "\nalternatives: [ways]", "", less("gate gate would be removed")},
		"the same":                            {base(lockTop(byKey)), full, full, "", nil},
		"a stricter one":                      {base(lockTop(byKey)), lockSpec + "\nactions: {OverrideEvaded: Warn}", full, "", nil},
		"no override holds":                   {base(lockTop("defaults: {ways: {key: 1}}")), full, lockSpec, "", nil},
		"an override that holds nowhere":      {base(lockOwn("ways: {key: 2}"), locked("infra", "top", "targetRefs: [{kind: Gateway, name: none}]\n", byKey)), full, lockSpec, "", nil},
		"an override that a higher one beats": {base(lockTop(byKey), lockOwn("overrides: {ways: {key: 2}}")), full, lockSpec, "", less("gate gate would be removed; alternatives would not begin with ways")},
		"the profile gets an owner, and a built-in one that protects less is used then": {
			base(lockTop(byKey)), full, lockSpec, "ConfigMap infra/x", less("gate gate would be removed; alternatives would not begin with ways"),
		},
		"removals were warnings before, too": {
			base(lockTop(byKey)), full + "\nactions: {OverrideRemoved: Warn}", full + "\nactions: {OverrideRemoved: Warn, OverrideEvaded: Warn}", "",
			[]string{"Warn " + strings.TrimSuffix(less("the action of OverrideEvaded would be Warn")[0], "\n")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(worlds.ProfileDoc("Lock", test.was), test.objects))
			after := readBy(t, v, worlds.ProfileDoc("Lock", test.now), test.objects)
			messagesFor := func(user string) []string {
				g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{after: after}, Permissions: bossAndDev()}
				change := guard.Change{Operation: guard.Update, Before: profile("lock", nil), After: profile("lock", nil), Owner: test.owner, User: userOf(user)}
				ev, err := g.Evaluate(t.Context(), v, change, nil)
				require.NoError(t, err)
				return nilIfEmpty(messagesOf(ev, "OverrideRemoved"))
			}
			var denials, warnings []string
			for _, what := range test.want {
				what, reported := strings.CutPrefix(what, "Warn ")
				warnings = append(warnings, warn(what))
				if reported {
					denials = append(denials, "Warn "+strings.TrimPrefix(deny(what, "Lock infra/top"), "Deny "))
					continue
				}
				denials = append(denials, deny(what, "Lock infra/top"))
			}
			assert.Equal(t, denials, messagesFor("dev"))
			assert.Equal(t, warnings, messagesFor("boss"))
		})
	}
}
