package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// The world of the tests.
var (
	world      = worlds.World
	read       = worlds.Read
	gatewayDoc = worlds.GatewayDoc
	routeDoc   = worlds.RouteDoc
	policyDoc  = worlds.PolicyDoc
	docs       = worlds.Docs
)

func routeRef(name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: name}
}

func paintRef(namespace, name string) api.Ref {
	return api.Ref{Group: "example.com", Kind: "Paint", Namespace: namespace, Name: name}
}

// evaluate evaluates the change of one document on top of a view: a CREATE, or an
// UPDATE of what the view has.
func evaluate(t testing.TB, v *snapshot.View, doc string) *guard.Decision {
	t.Helper()
	return evaluateBy(t, &guard.Guard{Engine: effective.NewEngine()}, v, doc)
}

func evaluateBy(t testing.TB, g *guard.Guard, v *snapshot.View, doc string) *guard.Decision {
	t.Helper()
	ev, err := g.Evaluate(t.Context(), v, change(v, read(t, v, doc)), nil)
	require.NoError(t, err)
	return ev
}

func change(v *snapshot.View, after snapshot.Object) guard.Change {
	c := guard.Change{Operation: guard.Create, After: after}
	if before := v.Get(after.Ref()); before != nil {
		c.Operation, c.Before = guard.Update, before
	}
	return c
}

func deleted(t testing.TB, v *snapshot.View, ref api.Ref) *guard.Decision {
	t.Helper()
	g := &guard.Guard{Engine: effective.NewEngine()}
	ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: v.Get(ref)}, nil)
	require.NoError(t, err)
	return ev
}

// codes shows a decision without its messages, as in "Deny Invalid rule".
func codes(t testing.TB, ev *guard.Decision) []string {
	t.Helper()
	worded(t, messages(ev)...)
	var out []string
	for _, f := range slices.Concat(ev.Denials, ev.Warnings, ev.Audits) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Action, f.Code, f.Rule)))
	}
	return out
}
