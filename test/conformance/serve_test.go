package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// server serves requests as the gateways of a cluster would that route as the router
// says.
type server struct {
	cluster *cluster
	// isolated is set while a test runs that needs listener isolation. All others must
	// pass under each reading of Gateway API.
	isolated atomic.Bool

	mu sync.Mutex
	// routed is the number of requests that were routed, and distinct are those of each
	// test, each once.
	routed   int
	distinct map[string]bool
	moved    int // see checkMoves
	errs     []error
	turns    map[string]int // of each rule
}

func newServer(c *cluster) *server {
	s := &server{cluster: c, distinct: make(map[string]bool), turns: make(map[string]int)}
	c.net.serveTCP, c.net.serveUDP = s.serveTCP, s.serveUDP
	return s
}

// requests returns how many requests were routed, and how many of them differ.
func (s *server) requests() (routed, distinct int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routed, len(s.distinct)
}

// moves returns how often a request moved.
func (s *server) moves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved
}

// count counts a request to a gateway or a service, and reports whether it is a new one.
func (s *server) count(to api.Ref, q *gateway.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routed++
	key := to.String() + " " + withoutJitter(q).String()
	known := s.distinct[key]
	s.distinct[key] = true
	return !known
}

// withoutJitter returns a request without the header by which the tests of weights make
// all requests differ.
func withoutJitter(q *gateway.Request) *gateway.Request {
	out := *q
	out.Headers = slices.DeleteFunc(slices.Clone(q.Headers), func(f gateway.Field) bool { return strings.EqualFold(f.Name, "x-jitter") })
	return &out
}

// otherReadings are those that every test must pass under, besides the zero one.
var otherReadings = []gateway.Reading{{Shared: true}, {Regex: gateway.RegexFirst}, {Regex: gateway.RegexAfterExact}, {OneKind: true}}

// route returns where a request to a gateway goes. It checks that the answers of the
// router agree.
func (s *server) route(v *snapshot.View, g *gateway.Gateway, q *gateway.Request) gateway.Served {
	isNew := s.count(g.Ref(), q)
	router := gateway.NewRouter(listenersOf(v, g), v, gateway.Reading{})
	served := router.Route(q)
	if first := router.Answer(q).Served; !first.Same(served) {
		s.fail(fmt.Errorf("%s goes to %s, and without an index to %s", q, describe(served), describe(first)))
	}
	for _, reading := range otherReadings {
		if other := router.With(reading).Route(q); !other.Same(served) && !s.isolated.Load() {
			s.fail(fmt.Errorf("%s goes to %s, and under %+v to %s", q, describe(served), reading, describe(other)))
		}
	}
	if isNew && served.Route != nil {
		if err := s.checkMoves(v, g, q, served); err != nil {
			s.fail(err)
		}
	}
	return served
}

// fail keeps an error for the test that runs. A request that returned it would be
// repeated, or taken for one that is rejected.
func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

// errors returns the errors since it was last called.
func (s *server) errors() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(s.errs...)
	s.errs = nil
	return err
}

func describe(s gateway.Served) string {
	if s.Route == nil {
		return "no route"
	}
	return fmt.Sprintf("rule %s of %s", s.Route.RuleName(s.Rule), s.Route.Ref())
}

// turn returns how many requests a rule served before.
func (s *server) turn(at gateway.Served) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(at.Route.Ref(), at.Route.Created, at.Rule)
	s.turns[key]++
	return s.turns[key] - 1
}

// rule has the fields of a rule that say what becomes of a request.
type rule struct {
	Filters     []gatewayv1.HTTPRouteFilter `json:"filters"`
	BackendRefs []gatewayv1.HTTPBackendRef  `json:"backendRefs"`
}

func ruleOf(r *gateway.Route, i int) (*rule, error) {
	data, err := json.Marshal(r.Spec())
	if err != nil {
		return nil, err
	}
	var spec struct {
		Rules []rule `json:"rules"`
	}
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, err
	}
	return &spec.Rules[i], nil
}

// backend returns one of the backends of the rule, by their weights, nil if there is
// none. turn is the number of requests that the rule served before.
func (r *rule) backend(turn int) *gatewayv1.HTTPBackendRef {
	weight := func(b *gatewayv1.HTTPBackendRef) int {
		if b.Weight == nil {
			return 1
		}
		return int(*b.Weight)
	}
	total := 0
	for i := range r.BackendRefs {
		total += weight(&r.BackendRefs[i])
	}
	if total == 0 {
		return nil
	}
	n := turn % total
	for i := range r.BackendRefs {
		if n -= weight(&r.BackendRefs[i]); n < 0 {
			return &r.BackendRefs[i]
		}
	}
	return nil
}

// endpoint is the pod that a request reaches.
type endpoint struct {
	pod     *corev1.Pod
	service string
	filters []gatewayv1.HTTPRouteFilter // of the backendRef
}

// endpointOf returns the pod that a request to a rule reaches, nil if the rule has no
// backend that is available.
func (s *server) endpointOf(v *snapshot.View, at gateway.Served, r *rule) *endpoint {
	route := at.Route
	ref := r.backend(s.turn(at))
	if ref == nil {
		return nil
	}
	b := gateway.Backend{Object: api.Ref{Kind: gateway.KindService, Namespace: route.Namespace, Name: string(ref.Name)}}
	if ref.Group != nil {
		b.Object.Group = string(*ref.Group)
	}
	if ref.Kind != nil {
		b.Object.Kind = string(*ref.Kind)
	}
	if ref.Namespace != nil {
		b.Object.Namespace = string(*ref.Namespace)
	}
	if resolve(v, route, b) != "" {
		return nil
	}
	pod := s.cluster.pod(context.Background(), b.Object)
	if pod == nil {
		return nil
	}
	return &endpoint{pod: pod, service: b.Object.Name, filters: ref.Filters}
}
