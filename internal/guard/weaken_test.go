package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/worlds"
)

// lock is a kind with a gate, and with ways of which one is enough.
var lock = worlds.ProfileDoc("Lock", "rules: [ways.*, other.*, gate]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides], defaults: [defaults], when: when}\ngates: [gate]\nalternatives: [ways]")

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
