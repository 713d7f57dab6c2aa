package snapshot_test

import (
	"fmt"
	"testing"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// filled returns a store with a number of routes on 100 gateways, each with a policy.
func filled(b *testing.B, routes int) (*snapshot.Store, *policykind.Kind) {
	b.Helper()
	k := paint(b, "Paint")
	s := snapshot.New()
	var changes []snapshot.Change
	for i := range 100 {
		changes = append(changes, snapshot.Put(newGateway(b, fmt.Sprintf("g%d", i), "istio")))
	}
	template, own := route(b, "r", "g0"), policy(b, k, "p", "r")
	for i := range routes {
		r := &gateway.Route{
			Kind: template.Kind, Namespace: template.Namespace, Name: fmt.Sprintf("r%d", i), Rules: template.Rules,
			Parents: []gateway.Parent{{Kind: gateway.KindGateway, Namespace: "infra", Name: fmt.Sprintf("g%d", i%100)}},
		}
		p := *own
		p.Name, p.Targets = r.Name, []policykind.Target{{Ref: r.Ref()}}
		changes = append(changes, snapshot.Put(r), snapshot.Put(&p))
	}
	s.Apply(changes...)
	return s, k
}

// One informer event. Its cost must not grow with the number of objects.
func BenchmarkApplyEvent(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d routes", n), func(b *testing.B) {
			s, _ := filled(b, n)
			r := route(b, "r77", "g5")
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(snapshot.Put(r))
			}
		})
	}
}

// A hypothetical change of a policy.
func BenchmarkWhatIf(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d routes", n), func(b *testing.B) {
			s, k := filled(b, n)
			v, _ := s.View()
			p := policy(b, k, "r77", "r77")
			b.ReportAllocs()
			for b.Loop() {
				v.With(snapshot.Put(p))
			}
		})
	}
}
