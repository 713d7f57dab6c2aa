package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

const (
	infra = "kind: Namespace\nmetadata: {name: infra}"
	dying = "kind: Namespace\nmetadata: {name: infra, deletionTimestamp: '2026-01-01T00:00:00Z'}"
)

func namespaceRef(name string) api.Ref { return api.Ref{Kind: "Namespace", Name: name} }

// living is what a live look finds.
type living struct {
	found snapshot.Object
	err   error
	asked []api.Ref
}

func (l *living) look(_ context.Context, ref api.Ref) (snapshot.Object, error) {
	l.asked = append(l.asked, ref)
	return l.found, l.err
}

// What the system deletes is never denied: it was evaluated when the namespace, or
// the owner, was deleted. It is recorded.
func TestSystemDeletions(t *testing.T) {
	v := world(t, base(infra, gatewayPolicy(hard)))
	terminating, other := read(t, v, dying), read(t, v, "kind: Namespace\nmetadata: {name: other}")
	namespaced := "Audit OverrideRemoved a Paint infra/top: 2 paths"
	tests := map[string]struct {
		view      *snapshot.View
		live      *living
		collected bool
		want      string
		looked    []api.Ref
	}{
		"the namespace stays":                         {v, nil, false, "Deny OverrideRemoved a Paint infra/top: 2 paths", nil},
		"the namespace stays, says a live look":       {v, &living{found: other}, false, "Deny OverrideRemoved a Paint infra/top: 2 paths", []api.Ref{namespaceRef("infra")}},
		"there is no namespace, says a live look":     {v, &living{}, false, "Deny OverrideRemoved a Paint infra/top: 2 paths", []api.Ref{namespaceRef("infra")}},
		"the namespace is being deleted":              {v.With(put(t, v, dying)), nil, false, namespaced, nil},
		"the namespace is being deleted, as is known": {v.With(put(t, v, dying)), &living{}, false, namespaced, nil},
		"the namespace was deleted a moment ago":      {v, &living{found: terminating}, false, namespaced, []api.Ref{namespaceRef("infra")}},
		"the namespace is not known, and being deleted": {
			v.With(del(namespaceRef("infra"))), &living{found: terminating}, false, namespaced, []api.Ref{namespaceRef("infra")},
		},
		"the garbage collector": {
			v, &living{}, true, "Audit OverrideRemoved a Paint infra/top: 2 paths", nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := &guard.Guard{Engine: effective.NewEngine(), Permissions: bossAndDev()}
			if test.live != nil {
				g.ReadLive = test.live.look
			}
			c := guard.Change{Operation: guard.Delete, Before: v.Get(paintRef("infra", "top")), GarbageCollected: test.collected, User: userOf("controller")}
			ev, err := g.Evaluate(t.Context(), test.view, c, nil)
			require.NoError(t, err)
			assert.Equal(t, []string{test.want}, findingsOf(t, ev, "Override"))
			assert.Equal(t, test.want[0] == 'D', ev.Denied())
			if test.live != nil {
				assert.Equal(t, test.looked, test.live.asked)
			}
		})
	}
}

// The rights of the system's user are not asked for, whatever they are.
func TestSystemDeletionNeedsNoPermission(t *testing.T) {
	v := world(t, base(dying, gatewayPolicy(hard)))
	rights := &owners{err: errors.New("no answer")}
	ev, err := (&guard.Guard{Engine: effective.NewEngine(), Permissions: rights}).Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: v.Get(paintRef("infra", "top"))}, nil)
	require.NoError(t, err)
	assert.Empty(t, ev.Denials)
	assert.Empty(t, rights.asked)
}

// Only deletions are made by the system.
func TestEditsInTerminatingNamespaceAreEvaluated(t *testing.T) {
	v := world(t, base(dying, gatewayPolicy(hard)))
	ev := evaluateAs(t, bossAndDev(), "dev", v, change(v, read(t, v, gatewayPolicy("overrides: {strategy: patch, a: 2}"))))
	assert.Equal(t, []string{"Deny OverrideRemoved a Paint infra/top: 2 paths"}, findingsOf(t, ev, "Override"))
}

// The namespace is looked for only on the way to a denial.
func TestNamespaceIsReadOnlyBeforeDenial(t *testing.T) {
	v := world(t, base(infra, gatewayPolicy("defaults: {a: 1}")))
	live := &living{err: errors.New("down")}
	g := &guard.Guard{Engine: effective.NewEngine(), ReadLive: live.look}
	for _, ref := range []api.Ref{paintRef("infra", "top"), routeRef("r")} {
		_, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: v.Get(ref)}, nil)
		require.NoError(t, err)
	}
	assert.Empty(t, live.asked)
}

func TestNamespaceReadError(t *testing.T) {
	v := world(t, base(infra, gatewayPolicy(hard)))
	live := &living{err: errors.New("down")}
	g := &guard.Guard{Engine: effective.NewEngine(), ReadLive: live.look}
	_, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: v.Get(paintRef("infra", "top"))}, nil)
	require.ErrorIs(t, err, live.err)
	require.EqualError(t, err, "get Namespace infra: down")
}

// What else would be denied is recorded, too: an evaluation that takes too long, and
// a blast radius.
func TestDenialsOfSystemDeletionAreRecorded(t *testing.T) {
	v := world(t, base(dying, gatewayPolicy("defaults: {a: 1}")))
	c := guard.Change{Operation: guard.Delete, Before: v.Get(paintRef("infra", "top"))}
	t.Run("it reaches too far", func(t *testing.T) {
		ev, err := (&guard.Guard{Engine: effective.NewEngine(), BlastRadius: 1}).Evaluate(t.Context(), v, c, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{
			"Warn RulesLost a Paint infra/top: HTTPRoute app/r, 2 paths, Gateway infra/g",
			"Audit BlastRadius: Paint infra/top, Paint, 2 paths, 1 namespace, 2, a, 1, paint.example.com, overrule.dev/acknowledge-blast-radius=3f60424d9fe249cd-2",
		}, findings(t, ev), "golden: why it is not denied")
	})
	t.Run("it costs too much", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(ctx, v, c, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"Audit TooMuch"}, codes(t, ev))
	})
	t.Run("an object without a namespace is in none that is being deleted", func(t *testing.T) {
		v := world(t, docs(dye, "kind: GatewayClass\nmetadata: {name: istio}", gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g"), dyed("infra", "top", "{kind: GatewayClass, name: istio}")))
		live := &living{found: read(t, v, dying)}
		c := guard.Change{Operation: guard.Delete, Before: v.Get(read(t, v, "kind: GatewayClass\nmetadata: {name: istio}").Ref())}
		ev, err := (&guard.Guard{Engine: effective.NewEngine(), ReadLive: live.look}).Evaluate(t.Context(), v, c, nil)
		require.NoError(t, err)
		assert.True(t, ev.Denied())
		assert.Empty(t, live.asked)
	})
}
