package schema_test

import (
	"testing"

	"overrule.dev/overrule/internal/schema"
	"overrule.dev/overrule/merge"
)

// What a write of a gateway's policy costs where 10,000 routes have one of their
// own: a check for each, and nothing remembered of them.
func BenchmarkCheck(b *testing.B) {
	fields := bareAB + "  mode: {type: string, default: soft}\n  limits: {type: object, maxProperties: 9, additionalProperties: {type: object, properties: {rate: {type: integer}, unit: {type: string, default: s}}}}\n"
	limits := "limits: {one: {rate: 1}, two: {rate: 2}}"
	for _, c := range []struct{ name, schema, route string }{
		{"nothing to check", specWith("  a: {type: string}\n  limits: {type: object, additionalProperties: {type: object}}\n", ""), "a: x"},
		{"a maximum", specWith(fields, ""), "a: x"},
		{"a one-of and a maximum", specWith(fields, oneOfAB), "a: x"},
		{"five rules in CEL", specWith(fields, `x-kubernetes-validations:
- {rule: "!(has(self.a) && has(self.b))"}
- {rule: "!(has(self.defaults) && (has(self.limits) || has(self.a)))"}
- {rule: "!(has(self.overrides) && (has(self.limits) || has(self.a)))"}
- {rule: "has(self.a) || has(self.b) || has(self.limits)"}
- {rule: "!has(self.limits) || self.limits.all(k, self.limits[k].rate < 1000 || has(self.a))"}`), "a: x"},
		{"what is wrong", specWith(fields, atMostOne), "a: x\nb: w"},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := only(b, newView(b, named, c.schema, "defaults: {strategy: merge, "+limits+"}", c.route+"\nlimits: {three: {rate: 3}}"))
			checker := schema.NewChecker(true)
			b.ReportAllocs()
			for b.Loop() {
				fresh := *e
				fresh.Result = &merge.Result{Rules: e.Rules, Outcomes: e.Result.Outcomes}
				if _, err := checker.Check(&fresh, unlimited()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)*10_000, "ms/10000")
		})
	}
}
