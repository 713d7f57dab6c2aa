package guard_test

import (
	"fmt"
	"testing"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// gatewayWorld is a view of a gateway with that many routes on it, each with a policy
// of its own if asked for.
func gatewayWorld(b *testing.B, routes int, policies bool) *snapshot.View {
	b.Helper()
	v := world(b, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), routePolicy("a: 2\nb: 2")))
	template, own := v.Get(routeRef("r")).(*gateway.Route), v.Get(paintRef("app", "own")).(*policykind.Policy)
	changes := []snapshot.Change{snapshot.Delete(template.Ref()), snapshot.Delete(own.Ref())}
	for i := range routes {
		r := &gateway.Route{
			Kind: template.Kind, Namespace: fmt.Sprintf("app-%d", i%100), Name: fmt.Sprintf("r%d", i),
			Parents: template.Parents, Rules: template.Rules,
		}
		p := *own
		changes = append(changes, snapshot.Put(r))
		if policies {
			p.Namespace, p.Name, p.Version = r.Namespace, r.Name, uint64(1_000_000+i)
			p.Targets = []policykind.Target{{Ref: r.Ref()}}
			changes = append(changes, snapshot.Put(&p))
		}
	}
	return v.With(changes...)
}

// A write of a gateway's policy: all paths under it are folded again. Each
// round writes something new, so that the folds after it are not remembered.
func BenchmarkGatewayPolicyWrite(b *testing.B) {
	tests := []struct {
		name, spec string
		policies   bool
	}{
		{"each route with a policy", "overrides: {strategy: patch, c: {d: %d}}", true},
		{"each route with a policy, and a when", "overrides: {strategy: patch, when: 'spec.a > 1', c: {d: %d}}", true},
		{"no route with a policy", "overrides: {strategy: patch, c: {d: %d}}", false},
	}
	for _, test := range tests {
		for _, n := range []int{1_000, 10_000} {
			b.Run(fmt.Sprintf("%s, %d routes", test.name, n), func(b *testing.B) {
				v := gatewayWorld(b, n, test.policies)
				v = v.With(put(b, v, gatewayPolicy(fmt.Sprintf(test.spec, 0))))
				g := &guard.Guard{Engine: effective.NewEngine(), Budget: 1 << 60}
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					i++
					c := change(v, read(b, v, gatewayPolicy(fmt.Sprintf(test.spec, i))))
					b.StartTimer()
					ev, err := g.Evaluate(b.Context(), v, c, nil)
					if err != nil || ev.Changes.Paths != n {
						b.Fatal(messages(ev), err)
					}
				}
			})
		}
	}
}

// A write of one route's policy costs what its paths cost, however many others
// there are.
func BenchmarkRoutePolicyWrite(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("%d routes", n), func(b *testing.B) {
			v := gatewayWorld(b, n, true)
			v = v.With(put(b, v, gatewayPolicy("overrides: {strategy: patch, a: 1}")))
			c := change(v, read(b, v, policyDoc("Paint", "app-7", "r7", "targetRefs: [{kind: HTTPRoute, name: r7}]\na: 5")))
			g := &guard.Guard{Engine: effective.NewEngine()}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Evaluate(b.Context(), v, c, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
