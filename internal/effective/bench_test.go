package effective_test

import (
	"fmt"
	"testing"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// The effective policies of 5,000 paths, each route with a policy of its own,
// from cold.
func BenchmarkWalk(b *testing.B) {
	v := world(b, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: g}]\ndefaults: {strategy: patch, a: 1}\noverrides: {strategy: patch, c: {d: 3}}"),
		policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 2\nb: 2")))
	template, own := v.Get(routeRef("r")).(*gateway.Route), v.Get(paintRef("app", "p")).(*policykind.Policy)
	var changes []snapshot.Change
	for i := range 4_999 {
		r := &gateway.Route{
			Kind: template.Kind, Namespace: template.Namespace, Name: fmt.Sprintf("r%d", i),
			Parents: template.Parents, Rules: template.Rules,
		}
		p := *own
		p.Name, p.Targets, p.Version = r.Name, []policykind.Target{{Ref: r.Ref()}}, uint64(1_000_000+i)
		changes = append(changes, snapshot.Put(r), snapshot.Put(&p))
	}
	v = v.With(changes...)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		err := effective.NewEngine().Walk(v, effective.Scope{All: true}, false, unlimited(), func(e *effective.Effective) error {
			n += len(e.Rules) / 3
			return nil
		})
		if err != nil || n != 5_000 {
			b.Fatal(n, err)
		}
	}
}
