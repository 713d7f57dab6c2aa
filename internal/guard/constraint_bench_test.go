package guard_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// demands of the constraints of the benchmark, each met: in CEL over the
// effective policy, over its origins, over the path, and without CEL.
var demands = []string{
	"validations: [{expression: 'effective.a + effective.b < %d'}]",
	"validations: [{expression: 'origins.all(k, o, o.block != \"overrides\" || o.namespace == \"infra\") && effective.b < %d'}]",
	"validations: [{expression: '!has(path.route.labels.public) || effective.b < %d'}]",
	"rules: [{path: a, required: true, max: %d}]",
}

// constrained puts n constraints on Paints into a view; all but near of them
// are on a gateway that is not there.
func constrained(b *testing.B, v *snapshot.View, n, near int) *snapshot.View {
	b.Helper()
	for i := range n {
		spec := fmt.Sprintf(demands[i%len(demands)], 1000+i)
		if i >= near {
			spec = "targets: [{kind: Gateway, namespace: infra, name: other}]\n" + spec
		}
		kind := "Paint"
		if i >= near && i%2 == 0 {
			kind = "Label"
		}
		v = v.With(snapshot.Put(readConstraintOf(b, fmt.Sprintf("c%03d", i), kind, spec)))
	}
	return v
}

// A write of a route under constraints: what is not on its path costs nearly
// nothing.
func BenchmarkRouteWriteUnderConstraints(b *testing.B) {
	for _, test := range []struct{ all, near int }{{0, 0}, {100, 0}, {100, 10}, {100, 100}} {
		b.Run(fmt.Sprintf("%d constraints, %d on the path", test.all, test.near), func(b *testing.B) {
			v := gatewayWorld(b, 1_000, true)
			v = v.With(put(b, v, gatewayPolicy("overrides: {strategy: patch, a: 1}")))
			v = constrained(b, v, test.all, test.near)
			old := v.Get(api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app-7", Name: "r7"}).(*gateway.Route)
			is := &gateway.Route{
				Kind: old.Kind, Namespace: old.Namespace, Name: old.Name, Parents: old.Parents, Rules: old.Rules,
				Labels: labels.Set{"x": "y"},
			}
			c := guard.Change{Operation: guard.Update, Before: old, After: is}
			g := &guard.Guard{Engine: effective.NewEngine()}
			b.ReportAllocs()
			for b.Loop() {
				ev, err := g.Evaluate(b.Context(), v, c, nil)
				if err != nil || ev.Denied() || len(ev.Warnings) > 0 {
					b.Fatal(messages(ev), err)
				}
			}
		})
	}
}
