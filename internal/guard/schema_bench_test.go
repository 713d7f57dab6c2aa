package guard_test

import (
	"fmt"
	"testing"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// A write of a gateway's policy over routes with policies of their own: each
// effective spec is another one, and is checked against the schema of the kind.
func BenchmarkGatewayPolicyWriteWithSchema(b *testing.B) {
	schema := world(b, worlds.SchemaDoc("Paint", `
type: object
x-kubernetes-validations: [{rule: "!(has(self.c) && has(self.limits))"}]
properties:
  targetRefs: {type: array, items: {type: object, properties: {group: {type: string}, kind: {type: string}, name: {type: string}}}}
  a: {type: integer}
  b: {type: integer}
  c: {type: integer}
  limits: {type: object, maxProperties: 3, additionalProperties: {type: integer}}
`)).Kinds()
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("%d routes", n), func(b *testing.B) {
			v := gatewayWorld(b, n, true)
			var policies []snapshot.Change
			for o := range v.Objects(paintRef("", "").PolicyKind()) {
				p := *o.(*policykind.Policy) //nolint:forcetypeassert // a kind of policies
				p.Kind = kindOf(schema, p.Kind)
				policies = append(policies, snapshot.Put(&p))
			}
			v = v.WithKinds(schema).With(policies...)
			v = v.With(put(b, v, gatewayPolicy("overrides: {strategy: patch, c: 0}")))
			g := &guard.Guard{Engine: effective.NewEngine(), Budget: 1 << 60}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				i++
				c := change(v, read(b, v, gatewayPolicy(fmt.Sprintf("overrides: {strategy: patch, c: %d}", i))))
				b.StartTimer()
				ev, err := g.Evaluate(b.Context(), v, c, nil)
				if err != nil || ev.Changes.Paths != n {
					b.Fatal(messages(ev), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/path")
		})
	}
}

func kindOf(kinds []*policykind.Kind, k *policykind.Kind) *policykind.Kind {
	for _, other := range kinds {
		if other.Ref() == k.Ref() {
			return other
		}
	}
	return k
}
