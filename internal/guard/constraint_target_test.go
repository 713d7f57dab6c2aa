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
	"overrule.dev/overrule/test/tables"
	"overrule.dev/overrule/test/worlds"
)

// A constraint whose target does not exist is not silent.
func TestConstraintWithAbsentTarget(t *testing.T) {
	v := world(t, docs(base(), worlds.ServiceDoc("app", "cart", 80), worlds.SetDoc("sets", "s", "g", "tls")))
	for name, c := range tables.Read[map[string]struct {
		Targets string
		Want    []string
	}](t, "testdata/tables/constraint-targets.yaml") {
		t.Run(name, func(t *testing.T) {
			ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v,
				guard.Change{Operation: guard.Create, After: readConstraint(t, "targets: ["+c.Targets+"]\n"+atMost)}, nil)
			require.NoError(t, err)
			assert.Equal(t, c.Want, findingsOf(t, ev, "TargetNotFound"))
			assert.Empty(t, ev.Denials)
		})
	}
}

// A target that was created a moment ago is looked up once.
func TestConstraintTargetIsReadLive(t *testing.T) {
	v := world(t, routeDoc("r", "[{}]"))
	c := guard.Change{Operation: guard.Create, After: readConstraint(t,
		"targets: [{kind: Gateway, namespace: infra, name: g}, {kind: Gateway, namespace: infra, name: g, sectionName: http}, {kind: Gateway, name: h}]\n"+atMost)}
	full := world(t, base())
	var asked []string
	g := &guard.Guard{Engine: effective.NewEngine(), ReadLive: func(_ context.Context, ref api.Ref) (snapshot.Object, error) {
		asked = append(asked, ref.String())
		return full.Get(ref), nil
	}}
	ev, err := g.Evaluate(t.Context(), v, c, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Gateway infra/g"}, asked)
	assert.Equal(t, []string{"Warn TargetNotFound: Gateway"},
		findingsOf(t, ev, "TargetNotFound"))

	g.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) { return nil, errors.New("no") }
	_, err = g.Evaluate(t.Context(), v, c, nil)
	require.EqualError(t, err, "get Gateway infra/g: no")
}
