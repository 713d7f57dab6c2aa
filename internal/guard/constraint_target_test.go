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
	"overrule.dev/overrule/test/worlds"
)

// A constraint whose target does not exist is not silent.
func TestConstraintWithAbsentTarget(t *testing.T) {
	const (
		service = "{group: '', kind: Service, namespace: app, name: cart, sectionName: "
	)
	v := world(t, docs(base(), worlds.ServiceDoc("app", "cart", 80), worlds.SetDoc("sets", "s", "g", "tls")))
	for name, c := range map[string]struct {
		targets string
		want    []string
	}{
		"a gateway that exists":             {"{kind: Gateway, namespace: infra, name: g}", nil},
		"one that does not":                 {"{kind: Gateway, namespace: infra, name: x}", []string{"Warn TargetNotFound: Gateway infra/x"}},
		"a listener that exists":            {"{kind: Gateway, namespace: infra, name: g, sectionName: http}", nil},
		"one that does not, of the gateway": {"{kind: Gateway, namespace: infra, name: g, sectionName: x}", []string{"Warn TargetNotFound: x, Gateway infra/g"}},
		"a listener of a set":               {"{kind: ListenerSet, namespace: sets, name: s, sectionName: tls}", nil},
		"one that the set does not have":    {"{kind: ListenerSet, namespace: sets, name: s, sectionName: x}", []string{"Warn TargetNotFound: x, ListenerSet sets/s"}},
		"a route's rule that exists":        {"{kind: HTTPRoute, namespace: app, name: r, sectionName: rule-1}", nil},
		"a route's rule that does not":      {"{kind: HTTPRoute, namespace: app, name: r, sectionName: rule-9}", []string{"Warn TargetNotFound: rule-9, HTTPRoute app/r"}},
		"a port by number":                  {service + "'80'}", nil},
		"a port that does not exist":        {service + "'81'}", []string{"Warn TargetNotFound: 81, Service app/cart"}},
		"one in any namespace":              {"{kind: Gateway, name: g}", nil},
		"one in no namespace":               {"{kind: Gateway, name: x}", []string{"Warn TargetNotFound: Gateway"}},
		"a class":                           {"{kind: GatewayClass, name: x}", []string{"Warn TargetNotFound: GatewayClass x"}},
		"one of two":                        {"{kind: Gateway, namespace: infra, name: g}, {kind: Gateway, namespace: infra, name: x}", []string{"Warn TargetNotFound: Gateway infra/x"}},
		"none beside a selector":            {"{kind: Gateway, selector: {matchLabels: {a: b}}}, {kind: Gateway, namespace: infra, name: x}", []string{"Warn TargetNotFound: Gateway infra/x"}},
		"all of a kind":                     {"{kind: TLSRoute}", nil},
		"a namespace cannot be decided":     {"{group: '', kind: Namespace, name: x}", nil},
		"nor can a kind that is not read":   {"{group: example.com, kind: Bucket, namespace: app, name: b}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v,
				guard.Change{Operation: guard.Create, After: readConstraint(t, "targets: ["+c.targets+"]\n"+atMost)}, nil)
			require.NoError(t, err)
			assert.Equal(t, c.want, findingsOf(t, ev, "TargetNotFound"))
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
