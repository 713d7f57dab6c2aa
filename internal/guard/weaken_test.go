package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// lock is a kind with a gate, and with ways of which one is enough.
const lockSpec = "rules: [ways.*, other.*, gate]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides], defaults: [defaults], when: when}"

var (
	lock  = worlds.ProfileDoc("Lock", lockSpec+"\ngates: [gate]\nalternatives: [ways]")
	plain = worlds.ProfileDoc("Lock", lockSpec)
)

func locked(namespace, name, target, spec string) string {
	return policyDoc("Lock", namespace, name, target+spec)
}

const (
	byKey    = "overrides: {ways: {key: 1}}"
	gating   = "OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"
	watering = "OverrideWeakened ways.open Lock infra/top: Lock app/own, ways.key"
)

// from is the weakening by a rule of a policy, as in "gate of Lock infra/top", of the
// override ways.key of another policy.
func from(by, policy string) string {
	text := strings.NewReplacer("app/own", by[strings.LastIndex(by, " ")+1:], "infra/top", policy)
	if strings.HasPrefix(by, "gate") {
		return text.Replace(gating)
	}
	return text.Replace(watering)
}

// olderDoc is a policy that was created before all others.
func olderDoc(doc string) string {
	return strings.Replace(doc, "metadata: {", "metadata: {creationTimestamp: \"1999-01-01T00:00:00Z\", ", 1)
}

func lockTop(spec string) string { return locked("infra", "top", toGateway, spec) }
func lockOwn(spec string) string { return locked("app", "own", toRoute, spec) }

// allowed is what those who may override read in place of denials.
func allowed(denied []string) []string {
	var out []string
	for _, text := range denied {
		if what, deny := strings.CutPrefix(text, "Deny "); deny {
			text = "Warn " + what
		}
		out = append(out, text)
	}
	return out
}

// What takes the force of an override away although it leaves it in its place,
// who is to blame for it, and what was there before.
func TestWeakenedOverrides(t *testing.T) {
	g, r := gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g")
	shut := listening(g, "http", "from: Same")
	tests := map[string]struct {
		before, write string
		want          []string
	}{
		"a gate of a lower policy":                   {base(lock, lockTop(byKey)), lockOwn("gate: 1"), []string{"Deny OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"an alternative of a lower policy":           {base(lock, lockTop(byKey)), lockOwn("ways: {open: 1}"), []string{"Deny OverrideWeakened ways.open Lock infra/top: Lock app/own, ways.key"}},
		"both":                                       {base(lock, lockTop(byKey)), lockOwn("gate: 1\nways: {open: 1}"), []string{"Deny OverrideWeakened gate Lock infra/top: Lock app/own, ways.key", "Deny OverrideWeakened ways.open Lock infra/top: Lock app/own, ways.key"}},
		"a gate in an overrides block":               {base(lock, lockTop(byKey)), lockOwn("overrides: {gate: 1}"), []string{"Deny OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"the same alternative, which is overruled":   {base(lock, lockTop(byKey)), lockOwn("ways: {key: 2}"), nil},
		"a rule that is neither":                     {base(lock, lockTop(byKey)), lockOwn("other: {open: 1}"), nil},
		"a gate that the override holds itself":      {base(lock, lockTop("overrides: {gate: 0, ways: {key: 1}}")), lockOwn("gate: 1"), nil},
		"an alternative of a group with no override": {base(lock, lockTop("overrides: {other: {key: 1}}")), lockOwn("ways: {open: 1}"), nil},
		"a default is not weakened":                  {base(lock, lockTop("defaults: {ways: {key: 1}}")), lockOwn("gate: 1\nways: {open: 1}"), nil},
		"a gate of a higher policy":                  {base(lock, lockOwn(byKey)), lockTop("gate: 1"), []string{"Deny " + from("gate of Lock infra/top", "app/own")}},
		"a gate in a higher policy's defaults":       {base(lock, lockOwn(byKey)), lockTop("defaults: {gate: 1}"), []string{"Deny " + from("gate of Lock infra/top", "app/own")}},
		"an alternative of a higher policy":          {base(lock, lockOwn(byKey)), lockTop("defaults: {ways: {open: 1}}"), []string{"Deny " + from("ways.open of Lock infra/top", "app/own")}},
		"a gate of an older policy beside it":        {base(lock, lockTop(byKey)), olderDoc(locked("infra", "beside", toGateway, "gate: 1")), []string{"Deny " + from("gate of Lock infra/beside", "infra/top")}},
		"a gate of a newer policy beside it":         {base(lock, lockTop(byKey)), locked("infra", "beside", toGateway, "gate: 1"), []string{"Deny " + from("gate of Lock infra/beside", "infra/top")}},
		"a higher policy's gate comes to a path with the override": {
			base(lock, lockOwn(byKey), locked("infra", "top", "targetRefs: [{kind: Gateway, name: other}]\n", "gate: 1")), lockTop("gate: 1"),
			[]string{"Deny " + from("gate of Lock infra/top", "app/own")},
		},
		"a higher default gate is not replaced any more": {
			base(lock, lockOwn(byKey), lockTop("defaults: {gate: 1}"), locked("app", "more", toRoute, "gate: 0")), locked("app", "more", toRoute, "other: {a: 1}"),
			[]string{"Deny " + from("gate of Lock infra/top", "app/own")},
		},
		"it is replaced by the override's own policy no more": {
			base(lock, lockOwn("defaults: {gate: 0}\n"+byKey), lockTop("defaults: {gate: 1}")), lockOwn(byKey),
			[]string{"Deny " + from("gate of Lock infra/top", "app/own")},
		},
		"a route moves to where a higher policy has a gate": {
			docs(lock, g, gatewayDoc("h", "istio", "http"), routeDoc("r", two, "h"), lockOwn(byKey), lockTop("gate: 1")), r,
			[]string{"Deny " + from("gate of Lock infra/top", "app/own")},
		},
		"a listener is renamed to one with a gate": {
			docs(lock, g, r, lockOwn(byKey), locked("infra", "top", "targetRefs: [{kind: Gateway, name: g, sectionName: alt}]\n", "gate: 1")), gatewayDoc("g", "istio", "alt"),
			[]string{"Deny " + from("gate of Lock infra/top", "app/own")},
		},
		"a new route with an override, under a higher gate": {docs(lock, g, lockOwn(byKey), lockTop("gate: 1")), r, nil},
		"an override is written under a higher gate":        {base(lock, lockTop("gate: 1")), lockOwn(byKey), []string{"Warn " + from("gate of Lock infra/top", "app/own")}},
		"a higher gate that was there":                      {base(lock, lockOwn(byKey), lockTop("gate: 1")), lockTop("gate: 1\nother: {key: 1}"), []string{"Warn " + from("gate of Lock infra/top", "app/own")}},
		"an equal gate of another policy is left": {
			base(lock, lockOwn(byKey), lockTop("defaults: {gate: 1}"), locked("app", "more", toRoute, "gate: 1")), locked("app", "more", toRoute, "other: {a: 1}"),
			[]string{"Deny " + from("gate of Lock infra/top", "app/own")},
		},
		"a gate of the override's own policy":        {base(lock), lockTop("defaults: {gate: 1}\n" + byKey), nil},
		"nothing, without such rules in the profile": {base(plain, lockTop(byKey)), lockOwn("gate: 1\nways: {open: 1}"), nil},
		"an override whose condition is met":         {base(lock, lockTop("overrides: {when: 'has(spec.gate)', ways: {key: 1}}")), lockOwn("gate: 1"), []string{"Deny OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"an override whose condition is not met":     {base(lock, lockTop("overrides: {when: 'has(spec.other)', ways: {key: 1}}")), lockOwn("gate: 1"), nil},
		"existing: reported to its writer":           {base(lock, lockTop(byKey), lockOwn("gate: 1")), lockOwn("gate: 1\nother: {key: 1}"), []string{"Warn OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"an alternative with another value, which was enough before": {
			base(lock, lockTop(byKey), lockOwn("ways: {open: 1}")), lockOwn("ways: {open: 2}"), []string{"Warn OverrideWeakened ways.open Lock infra/top: Lock app/own, ways.key"},
		},
		"another alternative than before": {
			base(lock, lockTop(byKey), lockOwn("ways: {open: 1}")), lockOwn("ways: {wide: 1}"), []string{"Deny " + strings.ReplaceAll(watering, "ways.open", "ways.wide")},
		},
		"several rules of one override": {
			base(lock, lockTop("overrides: {ways: {key: 1}, other: {a: 1, b: 1, c: 1}}")), lockOwn("gate: 1"),
			[]string{"Deny " + strings.Replace(gating, "ways.key", "other.a, other.b, other.c, 1", 1)},
		},
		"a namespace's label lets the route in": {
			docs(lock, listening(g, "http", "from: Selector, selector: {matchLabels: {team: red}}"), "kind: Namespace\nmetadata: {name: app}", r, lockTop(byKey), lockOwn("gate: 1")),
			"kind: Namespace\nmetadata: {name: app, labels: {team: red}}", []string{"Deny OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"},
		},
		"another policy takes the weakening over": {
			base(lock, lockTop(byKey), lockOwn("gate: 1")), locked("app", "more", toRoute, "overrides: {gate: 1}"), []string{"Deny " + strings.ReplaceAll(gating, "app/own", "app/more")},
		},
		"another policy gates by another value": {
			base(lock, lockTop(byKey), lockOwn("gate: 1")), locked("app", "more", toRoute, "overrides: {gate: 2}"), []string{"Deny " + strings.ReplaceAll(gating, "app/own", "app/more")},
		},
		"another value than before": {base(lock, lockTop(byKey), lockOwn("gate: 1")), lockOwn("gate: 2"), []string{"Deny OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"one more than before": {
			base(lock, lockTop(byKey), lockOwn("gate: 1")), lockOwn("gate: 1\nways: {open: 1}"), []string{"Deny OverrideWeakened ways.open Lock infra/top: Lock app/own, ways.key", "Warn OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"},
		},
		"no more":                             {base(lock, lockTop(byKey), lockOwn("gate: 1")), lockOwn("other: {key: 1}"), nil},
		"it was so before: nothing to others": {base(lock, lockTop(byKey), lockOwn("gate: 1")), locked("infra", "second", toGateway, "other: {key: 1}"), nil},
		"it was so before, and a route is edited": {
			base(lock, lockTop(byKey), lockOwn("gate: 1")), routeDoc("r", "[{}]", "g"), nil,
		},
		"the override meets existing limits or gates": {base(lock, lockOwn("gate: 1")), lockTop(byKey), []string{"Warn OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"the override has another value":              {base(lock, lockTop(byKey), lockOwn("gate: 1")), lockTop("overrides: {ways: {key: 2}}"), []string{"Warn OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"the override has one rule more": {
			base(lock, lockTop("overrides: {ways: {a: 1, key: 1}}"), lockOwn("gate: 1")), lockTop("overrides: {ways: {a: 1, b: 1, key: 1}}"),
			[]string{"Warn " + strings.Replace(gating, "ways.key", "ways.b", 1)},
		},
		"a route comes under the override": {docs(lock, g, routeDoc("r", two), lockTop(byKey), lockOwn("gate: 1")), r, []string{"Deny OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"a gateway lets the route in":      {docs(lock, shut, r, lockTop(byKey), lockOwn("gate: 1")), g, []string{"Warn OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}},
		"by the profile's word, a warning": {
			base(strings.TrimSuffix(lock, "\n")+"\n  actions: {OverrideWeakened: Warn}", lockTop(byKey)), lockOwn("gate: 1"), []string{"Warn OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, test.before)
			c := change(v, read(t, v, test.write))
			assert.Equal(t, test.want, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "OverrideWeakened"))
			assert.ElementsMatch(t, allowed(test.want), findingsOf(t, evaluateAs(t, bossAndDev(), "boss", v, c), "OverrideWeakened"), "who may override is warned")
		})
	}
}

// A profile that newly says what gates others is to blame for what it finds.
func TestProfileNamesGates(t *testing.T) {
	objects := base(lockTop(byKey), lockOwn("gate: 1"))
	v, after := world(t, docs(plain, objects)), world(t, docs(lock, objects))
	next := v.WithKinds(after.Kinds())
	for _, k := range after.Kinds() {
		for p := range after.Policies(k.Ref()) {
			next = next.With(snapshot.Put(p))
		}
	}
	g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{after: next}}
	ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Create, After: profile("lock", nil)}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Deny OverrideWeakened gate Lock infra/top: Lock app/own, ways.key"}, findingsOf(t, ev, "OverrideWeakened"))
}

// What was an alternative to other rules before is not therefore one to these.
func TestProfileNamesOtherAlternatives(t *testing.T) {
	const spec = "rules: [ways.*.*]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}\nalternatives: "
	objects := base(lockTop("overrides: {ways: {a: {x: 1}, b: {x: 1}}}"), lockOwn("ways: {a: {z: 1}}"))
	v := world(t, docs(worlds.ProfileDoc("Lock", spec+"[ways]"), objects))
	after := world(t, docs(worlds.ProfileDoc("Lock", spec+"[ways.*]"), objects))
	next := v.WithKinds(after.Kinds())
	for _, k := range after.Kinds() {
		for p := range after.Policies(k.Ref()) {
			next = next.With(snapshot.Put(p))
		}
	}
	g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{after: next}}
	ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Create, After: profile("lock", nil)}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Deny " + strings.NewReplacer("ways.open", "ways.a.z", "ways.key", "ways.a.x").Replace(watering)}, findingsOf(t, ev, "OverrideWeakened"))
}

// An override's own policy may not weaken it either: that is an edit of it.
func TestOverrideWeakenedByItsPolicy(t *testing.T) {
	const gate, open = "gate Lock infra/top: ways.key", "ways.open Lock infra/top: ways.key"
	tests := map[string]struct{ write, want string }{
		"a gate beside the override":          {"defaults: {gate: 1}\n" + byKey, gate},
		"a gate beside it that takes no part": {"gate: 1\n" + byKey, ""},
		"a gate in the overrides":             {"overrides: {gate: 1, ways: {key: 1}}", gate},
		"an alternative beside the override":  {"defaults: {ways: {open: 1}}\n" + byKey, open},
		"an alternative in the overrides":     {"overrides: {ways: {open: 1, key: 1}}", open},
		"another rule that weakens nothing":   {"overrides: {other: {open: 1}, ways: {key: 1}}", ""},
		"a rule beside it that does not gate": {"other: {open: 1}\n" + byKey, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, base(lock, lockTop(byKey)))
			c := change(v, read(t, v, lockTop(test.write)))
			var denied, warned []string
			if test.want != "" {
				denied, warned = []string{"Deny OverrideRemoved " + test.want}, []string{"Warn OverrideRemoved " + test.want}
			}
			assert.Equal(t, denied, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override"))
			assert.Equal(t, warned, findingsOf(t, evaluateAs(t, bossAndDev(), "boss", v, c), "Override"))
		})
	}
}

// A gate that was kept out by a policy comes back when that is deleted, by a user
// or with the owner that it is given; the system is not held up.
func TestDeletionBringsGate(t *testing.T) {
	v := world(t, base(lock, lockOwn(byKey), lockTop("defaults: {gate: 1}"), locked("app", "more", toRoute, "gate: 0")))
	more := read(t, v, locked("app", "more", toRoute, "gate: 0"))
	want := []string{"Deny " + from("gate of Lock infra/top", "app/own")}
	tests := map[string]guard.Change{
		"deleted":        {Operation: guard.Delete, Before: more},
		"given an owner": {Operation: guard.Update, Before: more, After: more, Owner: "ConfigMap app/gone"}, // and a warning of its own gate
		"by the system":  {Operation: guard.Delete, Before: more, GarbageCollected: true},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			ev := evaluateAs(t, bossAndDev(), "dev", v, c)
			if c.GarbageCollected {
				assert.Empty(t, ev.Denials)
				assert.NotEmpty(t, ev.Audits)
				return
			}
			assert.Subset(t, findingsOf(t, ev, "OverrideWeakened"), want)
			assert.Subset(t, findingsOf(t, evaluateAs(t, bossAndDev(), "boss", v, c), "OverrideWeakened"), allowed(want))
		})
	}
}

// Whether the writer may override cannot be found out: there is no verdict.
func TestPermissionToWeakenIsUnknown(t *testing.T) {
	v := world(t, base(lock, lockTop(byKey)))
	g := &guard.Guard{Engine: effective.NewEngine(), Permissions: &owners{err: errors.New("no answer")}}
	_, err := g.Evaluate(t.Context(), v, change(v, read(t, v, lockOwn("gate: 1"))), nil)
	require.ErrorIs(t, err, guard.ErrPermissions)
}

// A gate beside a block takes no part without another rule there: it weakens
// nothing, and its writer is warned.
func TestGateNextToBlocks(t *testing.T) {
	v := world(t, base(lock, lockTop(byKey)))
	ev := evaluateAs(t, bossAndDev(), "dev", v, change(v, read(t, v, lockOwn("gate: 1\ndefaults: {other: {a: 1}}"))))
	assert.Equal(t, []string{"Warn NotRead gate"}, findings(t, ev))
}
