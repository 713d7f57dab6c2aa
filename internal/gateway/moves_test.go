package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/gateway"
)

// Where NothingMoves says so, a search finds nothing.
func TestNothingMoves(t *testing.T) {
	alone, still, moved := 0, 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 51))
		sets := []string{"l: HTTP 80", "l: HTTP 80\nm: HTTP 80 *.example.com", "m: HTTP 80 *.example.com\nk: HTTP 80 a.example.com\no: HTTP 81 *.com"}
		listeners := pick(r, sets...)
		hostnames := func() string {
			h := pick(r, "a.example.com", "b.example.com", "c.com", "*.example.com", "")
			if other := pick(r, "", "", "d.example.com", "a.example.com", "*.com"); h != "" && other != "" && other != h {
				h += "," + other
			}
			return h
		}
		parts := func(name string) []string { // its name, age, hostnames and rules
			_, rules, _ := strings.Cut(mixedRoute(r, name), ": ")
			return []string{name + pick(r, "", "", "@l", "@m", "@k"), fmt.Sprint(1 + r.IntN(2)), hostnames() + ":", rules}
		}
		was, is := parts("own"), parts("own")
		for i := range is {
			if r.IntN(4) > 0 {
				is[i] = was[i]
			}
		}
		switch r.IntN(6) {
		case 0:
			was = nil // it is created
		case 1:
			is = nil
		}
		var others []string
		for i := range r.IntN(3) {
			others = append(others, strings.Join(parts(fmt.Sprint(pick(r, "http", "grpc"), i)), " "))
		}
		world := func(own []string) string {
			return strings.Join(append([]string{strings.Join(own, " ")}, others...), "\n")
		}
		reading := pick(r, mixedReadings...)
		reading.FallBack = r.IntN(3) == 0
		before, routesBefore := routerOf(t, listeners, world(was))
		after, routesAfter := routerOf(t, pick(r, sets...), world(is))
		if r.IntN(4) > 0 { // the listeners stay the same
			after = gateway.NewRouter(before.Listeners(), routes(routesAfter), gateway.Reading{})
		}
		own := func(all []*gateway.Route) []*gateway.Route {
			return slices.DeleteFunc(slices.Clone(all), func(r *gateway.Route) bool { return r.Name != "own" })
		}
		var moves []string
		for m := range gateway.Moves(before.With(reading), after.With(reading), own(routesBefore), own(routesAfter), gateway.MoveLimits{}) {
			moves = append(moves, fmt.Sprint(servedText(m.From), " to ", servedText(m.To), ": ", m.Request))
		}
		switch {
		case gateway.NothingMoves(before, after, own(routesBefore), own(routesAfter)):
			alone++
			require.Empty(t, moves, "seed %d: %+v\nbefore:\n%s\nafter:\n%s", seed, reading, world(was), world(is))
		case len(moves) == 0:
			still++
		default:
			moved++
		}
		fresh := gateway.NewRouter(after.Listeners(), routes(routesAfter), gateway.Reading{})
		for _, r := range own(routesAfter) { // of one without neighbors, no others are looked up
			require.Equal(t, fresh.MayBeUnreached(r), after.MayBeUnreached(r), "seed %d", seed)
			require.Len(t, slices.Collect(after.Rivals(r)), len(slices.Collect(fresh.Rivals(r))), "seed %d", seed)
		}
	}
	t.Logf("of %d changes that move nothing, %d are found without a search; %d move requests", alone+still, alone, moved)
	assert.Positive(t, min(alone, still, moved))
}
