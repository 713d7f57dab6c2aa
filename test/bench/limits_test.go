package bench

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// forms of three limits: with triggers as in the RFC, which bind to rules of
// routes, and as in Kuadrant's v1, which do not. The second is the reference.
var forms = []string{"triggers", "v1"}

// boundRules is the number of rules of each route.
const boundRules = 3

// limitsOf returns three limits: with triggers, each selects one rule of the
// route by its path.
func limitsOf(tb testing.TB, form string, route map[string]any, limit int) map[string]any {
	tb.Helper()
	rules, _ := route["spec"].(map[string]any)["rules"].([]any)
	require.Len(tb, rules, boundRules)
	out := make(map[string]any, len(rules))
	for i, rule := range rules {
		one := map[string]any{"rates": []any{map[string]any{"limit": limit + i, "window": "1m"}}}
		if form != "v1" {
			one = map[string]any{
				"rates":    []any{map[string]any{"limit": limit + i, "unit": "minute"}},
				"triggers": []any{map[string]any{"matches": rule.(map[string]any)["matches"]}},
			}
		}
		out[fmt.Sprintf("limit-%d", i)] = one
	}
	return out
}

// edited returns a copy of an object with another spec and resourceVersion.
func edited(o map[string]any, version int, edit func(spec map[string]any)) map[string]any {
	out, spec, meta := maps.Clone(o), maps.Clone(o["spec"].(map[string]any)), maps.Clone(o["metadata"].(map[string]any))
	meta["resourceVersion"] = fmt.Sprint(200_000 + version)
	edit(spec)
	out["spec"], out["metadata"] = spec, meta
	return out
}

// limitedGateway returns the gateway's policy after n writes, with three default
// limits.
func limitedGateway(tb testing.TB, u worlds.Uniform, form string, n int) map[string]any {
	tb.Helper()
	return edited(u.GatewayPolicy(0), n, func(spec map[string]any) {
		delete(spec, "overrides")
		spec["defaults"] = map[string]any{"strategy": "merge", "limits": limitsOf(tb, form, u.Route(0), 10+n)}
	})
}

// limitedRoute returns the policy of the first route.
func limitedRoute(tb testing.TB, u worlds.Uniform, form string) map[string]any {
	tb.Helper()
	return edited(u.RoutePolicy(0), 0, func(spec map[string]any) { spec["limits"] = limitsOf(tb, form, u.Route(0), 10) })
}

// routeAfter returns the first route after n writes: after every second one, its
// last rule has another path, to which its limit is not bound.
func routeAfter(u worlds.Uniform, n int) map[string]any {
	return edited(u.Route(0), n, func(spec map[string]any) {
		rules := append([]any(nil), spec["rules"].([]any)...)
		last := maps.Clone(rules[boundRules-1].(map[string]any))
		if n%2 == 1 {
			last["matches"] = []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/another"}}}
		}
		rules[boundRules-1] = last
		spec["rules"] = rules
	})
}

// boundCluster has a gateway with routes and these policies.
func boundCluster(tb testing.TB, routes int, policies ...func(u worlds.Uniform) map[string]any) (*production, worlds.Uniform) {
	tb.Helper()
	u := worlds.Uniform{Routes: routes, Rules: boundRules}
	c := u.Cluster(tb)
	for _, p := range policies {
		c.Put(tb, p(u))
	}
	return newProduction(tb, c), u
}

// BenchmarkRouteWriteLimits is an UPDATE of a route whose policy has three
// limits: one rule gets another path, and with triggers its limit is unbound,
// which results in a warning. It measures from the review's bytes to those of the
// response, for limits with and without triggers.
func BenchmarkRouteWriteLimits(b *testing.B) {
	for _, form := range forms {
		b.Run(form, func(b *testing.B) {
			p, u := boundCluster(b, 1_000, func(u worlds.Uniform) map[string]any { return limitedRoute(b, u, form) })
			gatewayWrites(b, p, func(n int) worlds.Write {
				return worlds.Write{Before: routeAfter(u, n), After: routeAfter(u, n+1)}
			})
		})
	}
}

// BenchmarkGatewayPolicyWriteLimits is an UPDATE of a policy of a gateway with
// 10,000 routes of three rules, which has three default limits: each is bound to
// a rule of every route. The reference is the same with limits without triggers.
func BenchmarkGatewayPolicyWriteLimits(b *testing.B) {
	for _, form := range forms {
		b.Run(form, func(b *testing.B) {
			p, u := boundCluster(b, 10_000, func(u worlds.Uniform) map[string]any { return limitedGateway(b, u, form, 0) })
			gatewayWrites(b, p, func(n int) worlds.Write {
				return worlds.Write{Before: limitedGateway(b, u, form, n), After: limitedGateway(b, u, form, n+1)}
			})
		})
	}
}

// The benchmarks measure what they claim: with triggers each limit is bound to
// its rule, and a route's write unbinds one; in the other form there is no
// warning.
func TestBenchmarkLimitsAreBound(t *testing.T) {
	for form, want := range map[string]string{
		"triggers": "limits.limit-2 of RateLimitPolicy",
		"v1":       "",
	} {
		t.Run(form, func(t *testing.T) {
			p, u := boundCluster(t, 2,
				func(u worlds.Uniform) map[string]any { return limitedGateway(t, u, form, 0) },
				func(u worlds.Uniform) map[string]any { return limitedRoute(t, u, form) })
			v, _ := p.Store.View()
			bound := map[string]int{}
			require.NoError(t, effective.NewEngine().Walk(v, effective.Scope{All: true}, false, effective.NewBudget(t.Context(), 1<<20),
				func(e *effective.Effective) error {
					if b := new(effective.Binder).Bind(e); b != nil {
						bound[b.Rules[b.Holder()].Key.String()]++
					}
					return nil
				}))
			warnings := strings.Join(warningsOf(t, p, routeAfter(u, 0), routeAfter(u, 1)), "\n")
			if want == "" {
				assert.Empty(t, bound)
				assert.NotContains(t, warnings, "limit-2")
				return
			}
			assert.Equal(t, map[string]int{"limits.limit-0": 2, "limits.limit-1": 2, "limits.limit-2": 2}, bound)
			assert.Contains(t, warnings, want)
			assert.Contains(t, warnings, "is no longer bound to any rule")
		})
	}
}

// warningsOf returns the warnings of a write.
func warningsOf(t *testing.T, p *production, before, after map[string]any) []string {
	t.Helper()
	c := guard.Change{Operation: guard.Update, Before: decoded(t, p, before), After: decoded(t, p, after)}
	v, _ := p.Store.View()
	j, err := p.guard.Evaluate(t.Context(), v, c, nil)
	require.NoError(t, err)
	require.Empty(t, j.Denials)
	var out []string
	for _, f := range j.Warnings {
		out = append(out, f.Message())
	}
	return out
}

func decoded(t *testing.T, p *production, object map[string]any) snapshot.Object {
	t.Helper()
	o := p.Decode(t, object)
	if policy, ok := o.(*policykind.Policy); ok {
		require.NoError(t, policy.Invalid)
	}
	return o
}
