package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

func put(t testing.TB, v *snapshot.View, doc string) snapshot.Change {
	t.Helper()
	return snapshot.Put(read(t, v, doc))
}

func del(ref api.Ref) snapshot.Change { return snapshot.Delete(ref) }

func TestTooMuch(t *testing.T) {
	v := world(t, base(gatewayPolicy(clip)))
	t.Run("a budget that is too small", func(t *testing.T) {
		ev := evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), Budget: 1}, v, routePolicy("a: 100"))
		assert.Equal(t, []string{
			"Deny TooMuch Paint infra/top: Paint app/own, 1, 1, HTTPRoute app/r, Gateway infra/g, 1, 2 rules, 2, Paint",
		}, findings(t, ev))
	})
	t.Run("a context that has ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g := &guard.Guard{Engine: effective.NewEngine()}
		ev, err := g.Evaluate(ctx, v, change(v, read(t, v, routePolicy("a: 1"))), nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
	})
	t.Run("no profile makes it less", func(t *testing.T) {
		ev := evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), Budget: 1}, lenient(t, v), routePolicy("a: 100"))
		assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
	})
}

// lenient is the view with a Paint whose profile turns actions round.
func lenient(t testing.TB, v *snapshot.View) *snapshot.View {
	t.Helper()
	return acting(t, v, map[api.ReasonCode]api.Action{
		api.ReasonConstraintViolated: api.Warn,
		api.ReasonOverridden:         api.Deny, api.ReasonTargetNotFound: api.Audit,
	})
}

// acting is the view with a Paint whose profile has other actions.
func acting(t testing.TB, v *snapshot.View, actions map[api.ReasonCode]api.Action) *snapshot.View {
	t.Helper()
	var all []*policykind.Kind
	var paints []*policykind.Policy
	for _, k := range v.Kinds() {
		if k.Kind == "Paint" {
			p := k.PolicyProfileSpec
			p.Actions = actions
			for old := range v.Policies(k.Ref()) {
				paints = append(paints, old)
			}
			var err error
			k, err = policykind.Compile(p, policykind.Builtin)
			require.NoError(t, err)
			for i, old := range paints {
				next := *old
				next.Kind, paints[i] = k, &next
			}
		}
		all = append(all, k)
	}
	out := v.WithKinds(all)
	for _, p := range paints {
		out = out.With(snapshot.Put(p))
	}
	return out
}

func TestProfileChangesActions(t *testing.T) {
	v := lenient(t, world(t, base(gatewayPolicy(clip+"\nb: 1"), policyDoc("Paint", "infra", "hard", toGateway+"overrides: {strategy: patch, c: 1}"))))
	assert.Equal(t, []string{"Warn RulesLost b", "Warn ConstraintViolated a"}, codes(t, evaluate(t, v, routePolicy("a: 100"))))
	assert.Equal(t, []string{"Deny Overridden c", "Warn RulesLost b"}, codes(t, evaluate(t, v, routePolicy("c: 2"))))
	assert.Equal(t, []string{"Audit TargetNotFound"}, codes(t, evaluate(t, v, policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: none}]\na: 1"))))

}

// What was there before the write is not denied, whatever the profile says.
func TestProfileKeepsWarningsForExisting(t *testing.T) {
	v := acting(t, world(t, base(gatewayPolicy(clip), routePolicy("a: 100"))), map[api.ReasonCode]api.Action{api.ReasonConstraintViolated: api.Deny})
	assert.Equal(t, []string{"Warn ConstraintViolated a"}, codes(t, evaluate(t, v, routePolicy("a: 101"))))
}

// A profile can deny writes that take rules of other policies out of force.
func TestProfileDeniesLostRules(t *testing.T) {
	v := acting(t, world(t, base(gatewayPolicy("defaults: {a: 1}"))), map[api.ReasonCode]api.Action{api.ReasonRulesLost: api.Deny})
	assert.Equal(t, []string{"Deny RulesLost a"}, codes(t, evaluate(t, v, routePolicy("b: 1"))))
	assert.Empty(t, codes(t, evaluate(t, v, routePolicy(""))), "an empty policy replaces nothing in this kind")
	moved := acting(t, world(t, base(gatewayDoc("h", "istio", "http"), gatewayPolicy("defaults: {a: 1}"))), map[api.ReasonCode]api.Action{api.ReasonRulesLost: api.Deny})
	assert.Contains(t, codes(t, evaluate(t, moved, routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}]", "h"))), "Deny RulesLost a", "by whatever write")
	header := `[{matches: [{headers: [{name: x, type: %s, value: a}]}]}]`
	unsure := acting(t, world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", fmt.Sprintf(header, "RegularExpression"), "g"), routePolicy("a: 1"))), map[api.ReasonCode]api.Action{api.ReasonRulesLost: api.Deny})
	assert.Equal(t, []string{"Warn RulesLost a"}, codes(t, evaluate(t, unsure, routeDoc("s", fmt.Sprintf(header, "Exact"), "g"))), "not where it is unsure")
}

// An object that the cache does not have yet is looked for once.
func TestLive(t *testing.T) {
	v := world(t, base())
	late := policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: late}, {kind: HTTPRoute, name: late, sectionName: rule-1}, {kind: HTTPRoute, name: r}, {kind: HTTPRoute, name: x, namespace: other}]\na: 1")
	looking := func(found snapshot.Object, err error) (*guard.Guard, *[]api.Ref) {
		var asked []api.Ref
		return &guard.Guard{Engine: effective.NewEngine(), ReadLive: func(_ context.Context, ref api.Ref) (snapshot.Object, error) {
			asked = append(asked, ref)
			return found, err
		}}, &asked
	}
	t.Run("and found", func(t *testing.T) {
		g, asked := looking(read(t, v, routeDoc("late", "[{}]", "g")), nil)
		ev := evaluateBy(t, g, v, late)
		assert.Equal(t, []api.Ref{routeRef("late")}, *asked)
		assert.Len(t, ev.Warnings, 1, "only the refused target is left")
		assert.Equal(t, api.Changes{Paths: 3, Namespaces: 1}, ev.Changes)
		assert.NotNil(t, ev.After.Get(routeRef("late")))
	})
	t.Run("and not found", func(t *testing.T) {
		g, asked := looking(nil, nil)
		ev := evaluateBy(t, g, v, late)
		assert.Equal(t, []api.Ref{routeRef("late")}, *asked)
		assert.Len(t, ev.Warnings, 3)
	})
	t.Run("and not to be had", func(t *testing.T) {
		down := errors.New("down")
		g, _ := looking(nil, down)
		_, err := g.Evaluate(t.Context(), v, change(v, read(t, v, late)), nil)
		require.ErrorIs(t, err, down)
		require.EqualError(t, err, "get HTTPRoute app/late: down")
	})
	t.Run("but not for a deletion, what is there, or a parent that the route had before", func(t *testing.T) {
		g, asked := looking(nil, nil)
		stored := world(t, base(routeDoc("adrift", "[{}]", "none")))
		evaluateBy(t, g, stored, routeDoc("adrift", "[{}, {}]", "none"))
		evaluateBy(t, g, v, routePolicy("a: 1"))
		_, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: read(t, v, late)}, nil)
		require.NoError(t, err)
		assert.Empty(t, *asked)
	})
}

// The request knows better than a cache what is stored.
func TestRequestIsNewerThanCache(t *testing.T) {
	stale := world(t, base(gatewayPolicy(clip), routePolicy("a: 100")))
	t.Run("on an update", func(t *testing.T) {
		c := change(stale, read(t, stale, routePolicy("a: 200")))
		c.Before = read(t, stale, routePolicy("a: 10"))
		ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), stale, c, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"Deny ConstraintViolated a"}, codes(t, ev))
	})
	t.Run("on a create of what the cache has still got", func(t *testing.T) {
		c := guard.Change{Operation: guard.Create, After: read(t, stale, routePolicy("a: 200"))}
		ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), stale, c, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"Deny ConstraintViolated a"}, codes(t, ev))
	})
}

// Whatever the order of the maps, the findings come in one order, each once.
func TestFindingsAreDeterministic(t *testing.T) {
	spec := "overrides: {strategy: patch, b: 1, c: 1, d: 1, e: 1, when: 'has(spec.k)'}"
	v := world(t, base(gatewayPolicy(spec), policyDoc("Paint", "infra", "second", toGateway+"overrides: {strategy: patch, f: 1, g: 1}")))
	write := routePolicy("k: 1\nb: 2\nc: 2\nd: 2\ne: 2\nf: 2\ng: 2\nunset: [g, f, e, d]")
	want := messages(evaluate(t, v, write))
	assert.Len(t, want, 10)
	for range 20 {
		assert.Equal(t, want, messages(evaluate(t, v, write)))
	}
}

func TestVerdict(t *testing.T) {
	v := world(t, base(gatewayPolicy(clip+"\n"), policyDoc("Paint", "infra", "hard", toGateway+"overrides: {strategy: patch, c: 1}")))
	ev := evaluate(t, v, routePolicy("a: 100\nc: 2"))
	top, hard := paintRef("infra", "top"), paintRef("infra", "hard")
	want := api.Verdict{
		Object: paintRef("app", "own"), Operation: "CREATE",
		Reasons:  []api.Reason{{Code: api.ReasonConstraintViolated, Rule: "a", Policy: &top, Field: "spec.a", Message: ev.Denials[0].Message()}},
		Warnings: []api.Reason{{Code: api.ReasonOverridden, Rule: "c", Policy: &hard, Field: "spec.c", Message: ev.Warnings[0].Message()}},
		Changes:  api.Changes{Paths: 2, Namespaces: 1},
	}
	want.Changes = ev.Changes
	assert.Equal(t, want, ev.Verdict(guard.EnforceDeny))
	want.Allowed = true
	assert.Equal(t, want, ev.Verdict(guard.EnforceWarn), "what would have been denied is a warning")
	assert.Equal(t, want, ev.Verdict(guard.EnforceAudit), "and is not denied either")
	want.Allowed = false
	assert.Equal(t, want, ev.Verdict(""), "what is not said denies")
}

// observe is shown each touched path whose effective policy differs.
func TestObserve(t *testing.T) {
	v := world(t, base(policyDoc("Paint", "app", "rule", toRule+"a: 1")))
	var seen []string
	_, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v, change(v, read(t, v, gatewayPolicy("defaults: {a: 5}"))), func(p effective.Pair) {
		seen = append(seen, fmt.Sprint(p.Effective().Path.Rule, p.Before == nil))
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"1 true"}, seen, "the first rule has its own")
}

func TestGuardIsSafeForConcurrentUse(t *testing.T) {
	g := &guard.Guard{Engine: effective.NewEngine()}
	v := world(t, base(gatewayPolicy(clip), routePolicy("a: 10")))
	writes := []string{routePolicy("a: 100"), gatewayPolicy("overrides: {a: 1}"), routeDoc("r", "[{}]", "g"), gatewayDoc("g", "istio", "alt")}
	var want [][]string
	for _, w := range writes {
		want = append(want, messages(evaluate(t, v, w)))
	}
	var wg sync.WaitGroup
	for i, w := range writes {
		for range 3 {
			c := change(v, read(t, v, w))
			wg.Go(func() {
				for range 20 {
					ev, err := g.Evaluate(context.Background(), v, c, nil)
					if assert.NoError(t, err) {
						assert.Equal(t, want[i], messages(ev))
					}
				}
			})
		}
	}
	wg.Wait()
}

// Rules that another policy takes an effect from are lost by its write: a policy of the kind,
// or of another one on the same backend.
func TestRulesIgnoredBesideAnotherPolicyAreLost(t *testing.T) {
	onService := func(kind, name, content string) string {
		return worlds.PolicyDoc(kind, "app", name, "targetRefs: [{group: '', kind: Service, name: s}]\n"+content)
	}
	const levels = "levels: [Backend]\ntargets: {fields: [targetRefs]}\nstrategy: {allowed: [merge]}\nsameTarget: oldestWins\n"
	v := world(t, docs(gatewayDoc("g", "istio", "http"), worlds.ServiceDoc("app", "s", 80), routeDoc("r", "[{backendRefs: [{name: s, port: 80}]}]", "g"),
		worlds.ClassProfileDoc("direct", "Conn", levels+"ignoreOn: [{rules: [tls], beside: Cert.example.com}]"),
		worlds.ClassProfileDoc("direct", "Retry", levels+"ignoreOn: [{rules: [a], where: Merged}]"),
		worlds.ClassProfileDoc("direct", "Cert", levels),
		worlds.ClassProfileDoc("direct", "Proto", strings.Replace(levels, "[", "[Service, ", 1)+"ignoreOn: [{rules: [v], route: GRPCRoute}]"),
		worlds.RouteTo("HTTPRoute", "app", "m", "[{backendRefs: [{name: s, port: 80}]}]", worlds.ToService("app", "s")),
		onService("Conn", "c", "tls: 1\nother: 1"), onService("Retry", "r", "a: 1\nb: 1"), onService("Proto", "p", "v: 1\nw: 1")))
	for write, lost := range map[string][2]string{
		onService("Cert", "x", "ca: 1"): {"tls", "it has no effect beside a Cert"},
		onService("Retry", "d", "c: 1"): {"a", "it has no effect beside another policy"},
		onService("Cert", "none", ""):   {"tls", "it has no effect beside a Cert"},
		worlds.RouteTo("GRPCRoute", "app", "q", "[{backendRefs: [{name: s, port: 80}]}]", worlds.ToService("app", "s")): {"v", "it has no effect on a GRPCRoute"},
	} {
		ev := evaluate(t, v, write)
		require.Equal(t, []string{"Warn RulesLost " + lost[0]}, codes(t, ev), write)
		assert.Contains(t, ev.Warnings[0].Message(), lost[1])
	}
	other := strings.ReplaceAll(onService("Cert", "x", "ca: 1"), "name: s}", "name: else}")
	assert.NotContains(t, codes(t, evaluate(t, v, other)), "Warn RulesLost tls")
}
