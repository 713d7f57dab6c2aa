package effective_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

func putChange(t testing.TB, v *snapshot.View, doc string) snapshot.Change {
	t.Helper()
	return snapshot.Put(read(t, v, doc))
}

func storeDelete(ref api.Ref) snapshot.Change { return snapshot.Delete(ref) }

func replaceName(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }

// compared formats the pairs of a comparison, as in
// "g/http r#x: old-name d=1 -> d=2 changed".
func compared(t testing.TB, before, after *snapshot.View, s effective.Scope) []string {
	t.Helper()
	var out []string
	side := func(e *effective.Effective) string {
		if e == nil {
			return "nothing"
		}
		text := fmt.Sprintf("[%d]", e.Path.Rule)
		for _, r := range e.Rules {
			text += fmt.Sprintf(" %s=%v", r.Key, r.Value)
		}
		return text
	}
	require.NoError(t, effective.NewEngine().Compare(before, after, s, unlimited(), func(p effective.Pair) error {
		text := fmt.Sprintf("%s: %s -> %s", p.Effective().Path.Route.Name, side(p.Before), side(p.After))
		if p.Changed() {
			text += " changed"
		}
		out = append(out, text)
		return nil
	}))
	return out
}

func TestCompare(t *testing.T) {
	const (
		a = "matches: [{path: {value: /a}}]"
		b = "matches: [{path: {value: /b}}]"
		c = "matches: [{path: {value: /c}}]"
	)
	base := docs(
		gatewayDoc("g", "istio", "http"), routeDoc("r", "[{"+a+"}, {"+b+"}]", "g"),
		policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\nx: 1"),
		policyDoc("Paint", "app", "second", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-2}]\nz: 2"),
	)
	tests := map[string]struct {
		change string // a document
		scope  effective.Scope
		want   []string
	}{
		"nothing changed": {
			routeDoc("r", "[{"+a+"}, {"+b+"}]", "g"), objectScope(routeRef("r")),
			[]string{"r: [0] x=1 -> [0] x=1", "r: [1] z=2 -> [1] z=2"},
		},
		"a rule inserted in front is new, those behind it are who they were": {
			routeDoc("r", "[{"+c+"}, {"+a+"}, {"+b+"}]", "g"), objectScope(routeRef("r")),
			// the section rule-2 now means what was the first rule
			[]string{"r: nothing -> [0] x=1 changed", "r: [0] x=1 -> [1] z=2 changed", "r: [1] z=2 -> [2] x=1 changed"},
		},
		"a removed rule": {
			routeDoc("r", "[{"+b+"}]", "g"), objectScope(routeRef("r")),
			[]string{"r: [1] z=2 -> [0] x=1 changed", "r: [0] x=1 -> nothing changed"},
		},
		"rules that changed places": {
			routeDoc("r", "[{"+b+"}, {"+a+"}]", "g"), objectScope(routeRef("r")),
			[]string{"r: [1] z=2 -> [0] x=1 changed", "r: [0] x=1 -> [1] z=2 changed"},
		},
		"a policy edited": {
			policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\nx: 5"), objectScope(routeRef("r")),
			[]string{"r: [0] x=1 -> [0] x=5 changed", "r: [1] z=2 -> [1] z=2"},
		},
		"a policy edited with no effect": {
			policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\nx: 1.0"), objectScope(routeRef("r")),
			[]string{"r: [0] x=1 -> [0] x=1", "r: [1] z=2 -> [1] z=2"},
		},
		"a route that leaves its gateway": {
			routeDoc("r", "[{"+a+"}]"), objectScope(routeRef("r")),
			[]string{"r: [0] x=1 -> nothing changed", "r: [1] z=2 -> nothing changed"},
		},
		"a listener that is renamed takes the same requests": {
			gatewayDoc("g", "istio", "web"), objectScope(gatewayRef("g")),
			[]string{"r: [0] x=1 -> [0] x=1", "r: [1] z=2 -> [1] z=2"},
		},
		"a listener of another name and port makes other paths": {
			strings.Replace(gatewayDoc("g", "istio", "web"), "port: 80", "port: 81", 1), objectScope(gatewayRef("g")),
			[]string{
				"r: nothing -> [0] x=1 changed", "r: nothing -> [1] z=2 changed",
				"r: [0] x=1 -> nothing changed", "r: [1] z=2 -> nothing changed",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := world(t, base)
			after := before.With(putChange(t, before, test.change))
			assert.Equal(t, test.want, compared(t, before, after, test.scope))
		})
	}
}

func TestPolicyWithoutRulesChangesNothing(t *testing.T) {
	before := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g")))
	after := before.With(putChange(t, before, policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]")))
	assert.Equal(t, []string{"r: nothing -> [0]"}, compared(t, before, after, objectScope(routeRef("r"))))
	assert.Equal(t, []string{"r: [0] -> [0]"}, compared(t, after, before, objectScope(routeRef("r"))), "the path is still there")
}

func TestCompareStopsAtVisitError(t *testing.T) {
	v := world(t, twoGateways())
	stop := errors.New("stop")
	visit := func(effective.Pair) error { return stop }
	require.ErrorIs(t, effective.NewEngine().Compare(v, v, effective.Scope{All: true}, unlimited(), visit), stop)
	gone := v.With(snapshot.Delete(routeRef("r1")))
	require.ErrorIs(t, effective.NewEngine().Compare(v, gone, objectScope(routeRef("r1")), unlimited(), visit), stop)
	broke := effective.NewBudget(t.Context(), 0)
	expensive := v.With(putChange(t, v, policyDoc("Paint", "infra", "g", "targetRefs: [{kind: Gateway, name: g1}]\noverrides: {when: 'spec.a > 0', b: 1}")))
	same := func(effective.Pair) error { return nil }
	require.ErrorIs(t, effective.NewEngine().Compare(v, expensive, objectScope(gatewayRef("g1")), broke, same), effective.ErrTooMuch)
	require.NoError(t, effective.NewEngine().Compare(expensive, v, objectScope(gatewayRef("g1")), effective.NewBudget(t.Context(), 0), same), "before, it costs nothing")
	late, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, effective.NewEngine().Compare(expensive, v, objectScope(gatewayRef("g1")), effective.NewBudget(late, 0), same), effective.ErrTooMuch)
}

// changedChains applies a change and returns what Compare visits in its scope: "+"
// is a new path, "-" a removed one, "~" one whose policies differ.
func changedChains(t testing.TB, before *snapshot.View, c snapshot.Change) []string {
	t.Helper()
	var out []string
	after := before.With(c)
	scope := effective.ScopeOf(before.Get(c.Ref), c.Object)
	require.NoError(t, effective.NewEngine().Compare(before, after, scope, unlimited(), func(p effective.Pair) error {
		p = policiesAlone(p)
		switch {
		case p.Before == nil:
			out = append(out, "+ "+chainOf(p.After))
		case p.After == nil:
			out = append(out, "- "+chainOf(p.Before))
		case p.Changed():
			was := chainOf(p.Before)
			out = append(out, "~ "+was+" -> "+chainOf(p.After)[strings.Index(chainOf(p.After), "|"):])
		}
		return nil
	}))
	return out
}

// policiesAlone drops the side of a pair without a policy.
func policiesAlone(p effective.Pair) effective.Pair {
	if p.After != nil && len(p.After.Outcomes) == 0 {
		p.After = nil
	}
	return p
}
