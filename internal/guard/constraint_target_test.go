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
		check   = "; check the target's kind, name and section, or create it"
		whole   = "Warn TargetNotFound: the constraint has no effect: none of its targets exists: "
		part    = "Warn TargetNotFound: the constraint has no effect on targets that do not exist: "
		service = "{group: '', kind: Service, namespace: app, name: cart, sectionName: "
	)
	v := world(t, docs(base(), worlds.ServiceDoc("app", "cart", 80), worlds.SetDoc("sets", "s", "g", "tls")))
	for name, c := range map[string]struct {
		targets string
		want    []string
	}{
		"a gateway that exists":             {"{kind: Gateway, namespace: infra, name: g}", nil},
		"one that does not":                 {"{kind: Gateway, namespace: infra, name: x}", []string{whole + "Gateway infra/x" + check}},
		"a listener that exists":            {"{kind: Gateway, namespace: infra, name: g, sectionName: http}", nil},
		"one that does not, of the gateway": {"{kind: Gateway, namespace: infra, name: g, sectionName: x}", []string{whole + "section x of Gateway infra/g" + check}},
		"a listener of a set":               {"{kind: ListenerSet, namespace: sets, name: s, sectionName: tls}", nil},
		"one that the set does not have":    {"{kind: ListenerSet, namespace: sets, name: s, sectionName: x}", []string{whole + "section x of ListenerSet sets/s" + check}},
		"a route's rule that exists":        {"{kind: HTTPRoute, namespace: app, name: r, sectionName: rule-1}", nil},
		"a route's rule that does not":      {"{kind: HTTPRoute, namespace: app, name: r, sectionName: rule-9}", []string{whole + "section rule-9 of HTTPRoute app/r" + check}},
		"a port by number":                  {service + "'80'}", nil},
		"a port that does not exist":        {service + "'81'}", []string{whole + "section 81 of Service app/cart" + check}},
		"one in any namespace":              {"{kind: Gateway, name: g}", nil},
		"one in no namespace":               {"{kind: Gateway, name: x}", []string{whole + "Gateway x" + check}},
		"a class":                           {"{kind: GatewayClass, name: x}", []string{whole + "GatewayClass x" + check}},
		"one of two":                        {"{kind: Gateway, namespace: infra, name: g}, {kind: Gateway, namespace: infra, name: x}", []string{part + "Gateway infra/x" + check}},
		"none beside a selector":            {"{kind: Gateway, selector: {matchLabels: {a: b}}}, {kind: Gateway, namespace: infra, name: x}", []string{part + "Gateway infra/x" + check}},
		"all of a kind":                     {"{kind: TLSRoute}", nil},
		"a namespace cannot be decided":     {"{group: '', kind: Namespace, name: x}", nil},
		"nor can a kind that is not read":   {"{group: example.com, kind: Bucket, namespace: app, name: b}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v,
				guard.Change{Operation: guard.Create, After: readConstraint(t, "targets: ["+c.targets+"]\n"+atMost)}, nil)
			require.NoError(t, err)
			assert.Equal(t, c.want, messagesOf(ev, "TargetNotFound"))
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
	assert.Equal(t, []string{"Warn TargetNotFound: the constraint has no effect on targets that do not exist: Gateway h; check the target's kind, name and section, or create it"},
		messagesOf(ev, "TargetNotFound"))

	g.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) { return nil, errors.New("no") }
	_, err = g.Evaluate(t.Context(), v, c, nil)
	require.EqualError(t, err, "get Gateway infra/g: no")
}
