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

// mixedWorld is a gateway with HTTPRoutes and GRPCRoutes, some of whose conditions are
// regular expressions, as routerOf reads it.
type mixedWorld struct {
	listeners string
	routes    []string
}

func mixedMatch(r *rand.Rand, grpc bool) string {
	path := pick(r, "/", "/", "/S", "/S/", "=/S/Buy", "/S/Buy", "/T", "~/S/B[a-z]+", "~/S/.*", "~/.*", "~/[ST]/Buy", "GET /S", "POST /")
	if grpc {
		path = pick(r, ".", "S.", "S.Buy", ".Buy", "T.Buy", "~[ST].Buy", "~S.B[a-z]+", "~S.", "~.B[a-z]+")
	}
	more := pick(r, "", "", "", " H=1", " H=2", " H=~[12]", " H=1 G=1", " G=~1+")
	if !grpc {
		more += pick(r, "", "", "", " ?q=1")
	}
	return path + more
}

func mixedRoute(r *rand.Rand, name string) string {
	grpc := strings.HasPrefix(name, "grpc")
	var rules []string
	for range 1 + r.IntN(3) {
		matches := mixedMatch(r, grpc)
		for range r.IntN(2) {
			matches += " ; " + mixedMatch(r, grpc)
		}
		rules = append(rules, matches)
	}
	hostname := pick(r, "", "", "*.example.com", "a.example.com")
	return fmt.Sprintf("%s %d %s: %s", name, 1+r.IntN(3), hostname, strings.Join(rules, " | "))
}

func randomMixedWorld(r *rand.Rand) mixedWorld {
	w := mixedWorld{listeners: pick(r, "l: HTTP 80", "l: HTTP 80\nm: HTTP 80 *.example.com", "m: HTTP 80 *.example.com\nn: HTTP 80 a.example.com")}
	for i := range 1 + r.IntN(4) {
		w.routes = append(w.routes, mixedRoute(r, fmt.Sprint(pick(r, "http", "http", "grpc"), i)))
	}
	return w
}

// change returns the world after a route was created, deleted or edited.
func (w mixedWorld) change(r *rand.Rand) mixedWorld {
	out := mixedWorld{w.listeners, slices.Clone(w.routes)}
	i := r.IntN(len(w.routes))
	name, _, _ := strings.Cut(w.routes[i], " ")
	switch r.IntN(4) {
	case 0:
		out.routes = slices.Delete(out.routes, i, i+1)
	case 1:
		out.routes = append(out.routes, mixedRoute(r, pick(r, "http-new", "grpc-new")))
	default:
		out.routes[i] = mixedRoute(r, name)
	}
	return out
}

func (w mixedWorld) String() string { return w.listeners + "\n" + strings.Join(w.routes, "\n") }

// under returns the router of the world, and its routes.
func (w mixedWorld) under(t testing.TB, reading gateway.Reading) (*gateway.Router, []*gateway.Route) {
	t.Helper()
	router, all := routerOf(t, w.listeners, strings.Join(w.routes, "\n"))
	return router.With(reading), all
}

// mixedRequests are those that the conditions of mixed worlds distinguish.
var mixedRequests = func() []*gateway.Request {
	var out []*gateway.Request
	for _, host := range []string{"a.example.com", "b.example.com", "e.org"} {
		for _, path := range []string{"/", "/S", "/S/Buy", "/S/Bye", "/S/Sell", "/S/Buy/x", "/T/Buy", "/T/Sell", "/U/Buy", "/U"} {
			for _, verb := range []string{"GET", "POST", "gRPC"} {
				for _, headers := range [][]gateway.Field{nil, {{Name: "h", Value: "1"}}, {{Name: "h", Value: "2"}}, {{Name: "h", Value: "1"}, {Name: "g", Value: "1"}}, {{Name: "g", Value: "11"}}} {
					q := &gateway.Request{Transport: gateway.TransportHTTP, Port: 80, Method: verb, Host: host, Path: path, Headers: headers}
					if q.GRPC = verb == "gRPC"; q.GRPC {
						q.Method = "POST"
					}
					out = append(out, q)
					if !q.GRPC {
						with := *q
						with.Query = []gateway.Field{{Name: "q", Value: "1"}}
						out = append(out, &with)
					}
				}
			}
		}
	}
	return out
}()

// mixedReadings are all ways in which implementations route requests.
var mixedReadings = func() []gateway.Reading {
	var out []gateway.Reading
	for _, shared := range []bool{false, true} {
		for _, one := range []bool{false, true} {
			for _, regex := range []gateway.RegexOrder{gateway.RegexLast, gateway.RegexFirst, gateway.RegexAfterExact} {
				out = append(out, gateway.Reading{Shared: shared, OneKind: one, Regex: regex})
			}
		}
	}
	return out
}()

// Route, which has an index, and Answer, which has none, agree in each reading.
func TestRouteAgreesWithAnswer(t *testing.T) {
	served := make(map[bool]int)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 20))
		w := randomMixedWorld(r)
		for _, reading := range mixedReadings {
			reading.FallBack = r.IntN(4) == 0
			router, _ := w.under(t, reading)
			for _, q := range mixedRequests {
				if r.IntN(16) > 0 {
					continue
				}
				a := router.Answer(q)
				for i, c := range a.Candidates {
					require.Equal(t, a.Route != nil && i == 0, c.After == "" || reading.FallBack && i == 0, "seed %d: %+v: %s\n%s", seed, reading, q, w)
				}
				want := servedText(a.Served)
				require.Equal(t, want, servedText(router.Route(q)), "seed %d: %+v: %s\n%s", seed, reading, q, w)
				served[!strings.Contains(want, "no")]++
			}
		}
	}
	t.Logf("%d requests are served, %d are not", served[true], served[false])
	assert.Positive(t, min(served[true], served[false]))
}

// Moves finds each pair of rules between which some request moves, also of regular
// expressions and gRPC, and each request that it shows does move. A pair that the regular
// expressions of others hide where they come first is found where they come last. If only
// one kind of route is accepted, a route can decide about hostnames that it does not share
// with others: such moves are not found.
func TestMovesOfRegularExpressionsAndGRPC(t *testing.T) {
	pairs, unsure := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 21))
		w := randomMixedWorld(r)
		x := w.change(r)
		reading := pick(r, mixedReadings...)
		reading.OneKind, reading.OwnHostnames = false, r.IntN(2) == 0
		last := reading
		last.Regex = gateway.RegexLast
		got := make(map[string]bool)
		for _, reading := range []gateway.Reading{reading, last} {
			before, routesBefore := w.under(t, reading)
			after, routesAfter := x.under(t, reading)
			for m := range gateway.Moves(before, after, routesBefore, routesAfter, gateway.MoveLimits{}) {
				at := servedText(m.From) + " to " + servedText(m.To)
				got[at] = true
				if m.Request == nil {
					unsure++
					continue
				}
				require.Equal(t, at, servedText(before.Route(m.Request))+" to "+servedText(after.Route(m.Request)), "seed %d: %s", seed, m.Request)
			}
		}
		before, _ := w.under(t, reading)
		after, _ := x.under(t, reading)
		for _, q := range mixedRequests {
			from, to := before.Route(q), after.Route(q)
			if at := servedText(from) + " to " + servedText(to); from.Route != nil && to.Route != nil && !from.Same(to) {
				require.True(t, got[at], "seed %d: %+v: %s moves from %s\nbefore:\n%s\nafter:\n%s", seed, reading, q, at, w, x)
				pairs++
			}
		}
	}
	t.Logf("%d requests move; where %d pairs of rules are concerned, that is unsure", pairs, unsure)
	assert.Positive(t, min(pairs, unsure))
}
