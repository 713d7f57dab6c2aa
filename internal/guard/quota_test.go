package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

const (
	onG       = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]\n"
	asked     = "defaults: {when: 'spec.a > 50', b: 1}"
	mostThere = 16
)

// References of grants.
const (
	paints   = "{group: example.com, kind: Paint, namespace: app}"
	gateways = "{group: gateway.networking.k8s.io, kind: Gateway}"
)

// conditional returns policies of one condition each.
func conditional(n int, namespace, target string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = policyDoc("Paint", namespace, fmt.Sprintf("c%03d", i), target+asked)
	}
	return out
}

func TestConditionLimit(t *testing.T) {
	crowd := func(n int, more ...string) string { return base(append(conditional(n, "app", toRoute), more...)...) }
	tooMany := func(at string, n int, of string) []string {
		return []string{fmt.Sprintf("Deny TooMuch: %s, %d, (when), Paint, 16, %s", at, n, of)}
	}
	const first = "Paint app/c000, Paint app/c001, Paint app/c002, Paint app/c003, "
	for name, c := range map[string]struct {
		before, write string
		want          []string
	}{
		"the last that may be there":         {crowd(mostThere - 1), policyDoc("Paint", "app", "new", toRoute+asked), nil},
		"one more":                           {crowd(mostThere), policyDoc("Paint", "app", "new", toRoute+asked), tooMany("HTTPRoute app/r", 17, first+"13")},
		"two in one policy":                  {crowd(mostThere - 1), policyDoc("Paint", "app", "new", toRoute+asked+"\noverrides: {when: 'spec.a > 5', c: 1}"), tooMany("HTTPRoute app/r", 17, first+"12")},
		"none":                               {crowd(mostThere), policyDoc("Paint", "app", "new", toRoute+"z: 1"), nil},
		"what was there stays editable":      {crowd(20), policyDoc("Paint", "app", "c003", toRoute+"defaults: {when: 'spec.a > 51', b: 2}"), nil},
		"another on what was there":          {crowd(20), policyDoc("Paint", "app", "c003", toRoute+asked+"\noverrides: {when: 'spec.a > 5', c: 1}"), tooMany("HTTPRoute app/r", 21, first+"16")},
		"fewer of more than there may be":    {crowd(20), policyDoc("Paint", "app", "c003", toRoute+"b: 1"), nil},
		"one on what is above":               {crowd(20), policyDoc("Paint", "infra", "top", onG+asked), nil},
		"an update of what is above":         {crowd(200, policyDoc("Paint", "infra", "top", onG+"c: 1")), policyDoc("Paint", "infra", "top", onG+"c: 2"), nil},
		"one on a section":                   {crowd(mostThere), policyDoc("Paint", "app", "new", strings.Replace(toRoute, "name: r", "name: r, sectionName: rule-1", 1)+asked), nil},
		"by a move to the target":            {crowd(mostThere, policyDoc("Paint", "app", "new", strings.Replace(toRoute, "name: r", "name: other", 1)+asked), routeDoc("other", "[{}]")), policyDoc("Paint", "app", "new", toRoute+asked), tooMany("HTTPRoute app/r", 17, first+"13")},
		"to a target that does not exist":    {docs(conditional(mostThere, "app", toRoute)...), policyDoc("Paint", "app", "new", toRoute+asked), tooMany("HTTPRoute app/r", 17, first+"13")},
		"the route, moved to another parent": {crowd(20, gatewayDoc("h", "istio", "http")), routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}]", "h"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, c.before)
			assert.Equal(t, c.want, findingsOf(t, evaluate(t, v, c.write), "TooMuch"))
		})
	}
}

// Conditions that cost all that they may, of one namespace on very many routes, are
// paid for by those who write them: a write of the gateway's policy evaluates none.
func TestConditionsBelowCostNothingAbove(t *testing.T) {
	const n = 40
	dear := "defaults: {when: 'spec.list.all(x, spec.list.all(y, x + y + %d > 0))', b: 1}\n"
	values := strings.TrimSuffix(strings.Repeat("1, ", 25), ", ")
	parts := []string{gatewayDoc("g", "istio", "http"), policyDoc("Paint", "infra", "top", onG+"c: 1")}
	for i := range n {
		name := fmt.Sprintf("r%d", i)
		target := strings.Replace(toRoute, "name: r", "name: "+name, 1)
		parts = append(parts, routeDoc(name, "[{}]", "g"), policyDoc("Paint", "app", "low"+name, target+fmt.Sprintf("list: [%s, %d]", values, i+1)),
			policyDoc("Paint", "app", "dear"+name, target+fmt.Sprintf(dear, i)))
	}
	v := world(t, docs(parts...))
	edit := change(v, read(t, v, policyDoc("Paint", "infra", "top", onG+"c: 2")))
	for _, budget := range []uint64{0, n * 100} {
		g := &guard.Guard{Engine: effective.NewEngine(), Budget: budget}
		ev, err := g.Evaluate(t.Context(), v, edit, nil)
		require.NoError(t, err)
		assert.Empty(t, ev.Denials, "budget %d", budget)
		assert.False(t, slices.ContainsFunc(ev.Warnings, func(f guard.Finding) bool { return f.Code == api.ReasonConditionSkipped }))
	}

	g := &guard.Guard{Engine: effective.NewEngine(), Budget: n * 100}
	more := change(v, read(t, v, policyDoc("Paint", "infra", "top", onG+"overrides: {when: 'spec.list.all(x, spec.list.all(y, x + y > -1))', b: 1}")))
	ev, err := g.Evaluate(t.Context(), v, more, nil)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(findings(t, ev)[0], "Deny TooMuch: Paint infra/top, "), "who writes it pays")
	assert.True(t, ev.Cut)
}

// Labels and grants bring policies to an object as a policy's own target does.
func TestConditionLimitOnLabelsAndGrants(t *testing.T) {
	const (
		named     = "targetRefs: [{kind: Gateway, name: g, namespace: infra}]\n"
		selecting = "targetRefs: [{kind: HTTPRoute, selector: {matchLabels: {team: red}}}]\n"
		across    = "targetRefs: [{kind: HTTPRoute, selector: {}, namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}]\n"
	)
	red := func(doc string) string {
		return strings.Replace(doc, "metadata: {", "metadata: {labels: {team: red}, ", 1)
	}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: app}"
	grant := worlds.GrantDoc("infra", "t", paints, gateways)
	free := worlds.ClassProfileDoc("inherited", "Paint", "targets: {fields: [targetRefs], namespaces: free}\nblocks: {defaults: [defaults], when: when}")
	granting := worlds.ClassProfileDoc("inherited", "Paint", "targets: {fields: [targetRefs], namespaces: referenceGrant}\nblocks: {defaults: [defaults], when: when}")
	for name, c := range map[string]struct{ before, write string }{
		"a label of the route":             {base(conditional(17, "app", selecting)...), red(routeDoc("r", "[{}]", "g"))},
		"a grant":                          {base(append(conditional(17, "app", named), granting)...), grant},
		"a grant for policies that select": {base(append(conditional(17, "app", "targetRefs: [{kind: Gateway, selector: {}, namespaces: {from: All}}]\n"), granting)...), grant},
		"a label of the route's namespace": {base(append(conditional(17, "infra", across), free, namespace)...), red(namespace)},
		"a policy that selects":            {base(append(conditional(16, "app", toRoute), red(routeDoc("r", "[{}]", "g")))[0:16]...), policyDoc("Paint", "app", "new", "targetRefs: [{kind: HTTPRoute, selector: {}}]\n"+asked)},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, c.before)
			ev := evaluate(t, v, c.write)
			assert.Contains(t, codes(t, ev), "Deny TooMuch")
			assert.NotContains(t, codes(t, evaluate(t, v.With(snapshot.Put(read(t, v, c.write))), c.write)), "Deny TooMuch", "what there is stays")
		})
	}
}

// The policies of a kind in a namespace have a number of rules that writes above them can
// be compared with.
func TestRuleLimit(t *testing.T) {
	const half = 50_000
	of := func(name string, rules int) string {
		var spec strings.Builder
		spec.WriteString("targetRefs: [{kind: HTTPRoute, name: r}]\n")
		for i := range rules {
			fmt.Fprintf(&spec, "r%d: 1\n", i)
		}
		return policyDoc("Paint", "app", name, spec.String())
	}
	v := world(t, docs(worlds.ProfileDoc("Paint", ""), gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), of("a", half)))
	assert.NotContains(t, codes(t, evaluate(t, v, of("b", half))), "Deny TooMuch")
	ev := evaluate(t, v, of("b", half+1))
	require.Contains(t, codes(t, ev), "Deny TooMuch")
	assert.Contains(t, ev.Denials[0].What, "the policies of kind Paint in namespace app would have 100001 rules: must have at most 100000")
	assert.NotContains(t, codes(t, evaluate(t, v, policyDoc("Paint", "infra", "b", "targetRefs: [{kind: Gateway, name: g}]\na: 1\n"))), "Deny TooMuch", "others are not limited by them")
	v = v.With(snapshot.Put(read(t, v, of("b", half+1))))
	assert.NotContains(t, codes(t, evaluate(t, v, of("b", half))), "Deny TooMuch", "what adds none is allowed beside too many")
	assert.NotContains(t, codes(t, evaluate(t, v, of("c", 10))), "Deny TooMuch", "a policy of few rules is not counted")
}
