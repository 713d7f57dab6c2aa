package bench

import (
	"testing"

	"overrule.dev/overrule/test/worlds"
)

// BenchmarkNeighborWrite is an UPDATE of the path of a route beside 200 routes of another
// namespace on the same hostname, each with as many matches as Gateway API allows, regular
// expressions: without a policy, and with overrides of their gateway.
func BenchmarkNeighborWrite(b *testing.B) {
	s := worlds.Shape{Gateways: 1, Listeners: 1, Routes: 200, RouteRules: 16, Matches: 8, Hostnames: 1, Regex: true}
	for name, policies := range map[string][]worlds.Object{"no-policy": nil, "override": {s.GatewayOverride()}} {
		b.Run(name, func(b *testing.B) {
			namespace, w := s.Neighbor()
			c := worlds.Empty(b)
			c.Put(b, append(append(s.Objects(), namespace, w.Before), policies...)...)
			gatewayWrites(b, newProduction(b, c), func(n int) worlds.Write {
				if n%2 == 1 {
					return w.Back()
				}
				return w
			})
		})
	}
}
