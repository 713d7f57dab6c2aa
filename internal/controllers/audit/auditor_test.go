package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/worlds"
)

// onRoute is a policy on a route, onGateway one on a gateway.
func onRoute(name, route, spec string) string {
	return worlds.PolicyDoc("Paint", "app", name, "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: "+route+"}]\n"+spec)
}

func onGateway(name, gw, spec string) string {
	return worlds.PolicyDoc("Paint", "infra", name, "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: "+gw+"}]\n"+spec)
}

// auditFixture is an Auditor with its Events and logs. A path is in violation if a is
// 100, and cannot be checked if b is 100.
type auditFixture struct {
	*testing.T
	*Auditor
	engine *effective.Engine
	err    error
	scopes []effective.Scope

	mu     sync.Mutex
	events []string
	lines  []string
}

func newAuditFixture(t *testing.T, o Options, docs ...string) *auditFixture {
	t.Helper()
	s := &auditFixture{T: t, engine: effective.NewEngine()}
	o.Store = snapshot.New()
	o.Violations = s.audit
	o.Events = s
	o.Log = funcr.New(func(_, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lines = append(s.lines, args)
	}, funcr.Options{Verbosity: 1})
	if o.Leading == nil {
		o.Leading = func() bool { return true }
	}
	s.Auditor = New(o)
	for _, k := range worlds.World(t, worlds.RouteDoc("r", "[{}]")).Kinds() {
		s.opts.Store.AddKind(k)
		s.opts.Store.KindListed(k.Ref())
	}
	s.put(docs...)
	return s
}

func (s *auditFixture) audit(ctx context.Context, v *snapshot.View, scope effective.Scope) ([]api.Violation, error) {
	s.scopes = append(s.scopes, scope)
	if s.err != nil {
		return nil, s.err
	}
	var out []api.Violation
	err := s.engine.Walk(v, scope, false, effective.NewBudget(ctx, 1<<40), func(e *effective.Effective) error {
		spec, _ := e.Spec().(map[string]any)
		if spec["a"] == int64(100) {
			out = append(out, api.Violation{
				Code: api.ReasonRequirementUnmet, Action: api.Deny, PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(), Rule: "a", Message: "a is 100",
			})
		}
		if spec["b"] == int64(100) {
			out = append(out, api.Violation{
				Code: api.ReasonNotRead, Action: api.Warn, PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(), Message: "no schema",
			})
		}
		return nil
	})
	return out, err
}

// Eventf implements events.EventRecorder.
func (s *auditFixture) Eventf(about, _ runtime.Object, kind, reason, action, note string, args ...any) {
	ref, _ := about.(*corev1.ObjectReference)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf("%s %s %s on %s %s %s/%s (%s): %s", kind, reason, action,
		ref.APIVersion, ref.Kind, ref.Namespace, ref.Name, ref.UID, fmt.Sprintf(note, args...)))
}

func (s *auditFixture) put(docs ...string) {
	s.Helper()
	for _, doc := range docs {
		v, _ := s.opts.Store.View()
		s.opts.Store.Apply(snapshot.Put(worlds.Read(s.T, v, doc)))
	}
}

func (s *auditFixture) remove(doc string) {
	s.Helper()
	v, _ := s.opts.Store.View()
	s.opts.Store.Apply(snapshot.Delete(worlds.Read(s.T, v, doc).Ref()))
}

// runOnce runs once and returns the paths in violation.
func (s *auditFixture) runOnce() []string {
	s.Helper()
	require.NoError(s, s.run(s.Context()))
	return s.paths()
}

func (s *auditFixture) paths() []string {
	var out []string
	for _, v := range *s.current.Load() {
		out = append(out, pathText(v.Path))
	}
	slices.Sort(out)
	return out
}

const (
	pathR = "GatewayClass class > Gateway infra/edge > Listener infra/edge#http > HTTPRoute app/r > HTTPRouteRule app/r#rule-1"
	pathS = "GatewayClass class > Gateway infra/edge > Listener infra/edge#http > HTTPRoute app/s > HTTPRouteRule app/s#rule-1"
)

var (
	edge   = worlds.GatewayDoc("edge", "class", "http")
	routeR = worlds.RouteDoc("r", "[{}]", "edge")
	routeS = worlds.RouteDoc("s", "[{}]", "edge")
)

func TestRunUpdatesViolations(t *testing.T) {
	s := newAuditFixture(t, Options{}, edge, routeR, routeS, onRoute("p", "r", "a: 100"))
	assert.Equal(t, []string{pathR}, s.runOnce(), "the first run audits all paths")
	assert.Empty(t, s.scopes[0].Objects)

	s.scopes = nil
	s.put(onRoute("q", "s", "a: 100"))
	assert.Equal(t, []string{pathR, pathS}, s.runOnce())
	require.Len(t, s.scopes, 1)
	require.Len(t, s.scopes[0].Policies, 1, "later runs audit only what changed")

	s.put(onRoute("p", "r", "a: 1"))
	assert.Equal(t, []string{pathS}, s.runOnce())
	s.put(onGateway("g", "edge", "overrides: {strategy: patch, a: 5}"))
	assert.Empty(t, s.runOnce())
	s.remove(onGateway("g", "edge", ""))
	assert.Equal(t, []string{pathS}, s.runOnce())
	s.remove(routeS)
	assert.Empty(t, s.runOnce(), "a removed path has no violation")
}

func TestEventsThatCauseFullAudit(t *testing.T) {
	constrained := constraint.FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{})
	for name, c := range map[string]struct {
		change func(*auditFixture)
		whole  bool
	}{
		"a route":                 {func(s *auditFixture) { s.put(routeS) }, false},
		"a constraint":            {func(s *auditFixture) { s.opts.Store.Apply(snapshot.Put(constrained)) }, true},
		"a constraint is deleted": {func(s *auditFixture) { s.changes.Record([]snapshot.Event{{Before: constrained}}) }, true},
		"a policy kind":           {func(s *auditFixture) { s.opts.Store.RemoveKind(api.PolicyKind{Group: worlds.Group, Kind: "Paint"}) }, true},
		"more changes than the queue holds": {func(s *auditFixture) {
			s.put(routeS, worlds.RouteDoc("t", "[{}]", "edge"), worlds.RouteDoc("u", "[{}]", "edge"))
		}, true},
		"as many changes as the queue holds": {func(s *auditFixture) { s.put(routeS, worlds.RouteDoc("t", "[{}]", "edge")) }, false},
		"a run after a failure": {
			func(s *auditFixture) {
				s.put(routeS)
				s.err = errors.New("no")
				assert.ErrorContains(s, s.run(s.Context()), "audit: no")
				s.err, s.scopes = nil, nil
			}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAuditFixture(t, Options{Queue: 2}, edge, routeR, onRoute("p", "r", "b: 100"))
			s.runOnce()
			s.scopes = nil
			c.change(s)
			s.runOnce()
			require.Len(t, s.scopes, 1)
			assert.Equal(t, c.whole, len(s.scopes[0].Roots) == 1, "%+v", s.scopes[0])
			assert.Empty(t, s.changes.Take())
		})
	}
}

// Incremental runs must find the same violations as an audit of all paths, whatever
// changes.
func TestIncrementalRunsEqualFullAudit(t *testing.T) {
	found := 0
	for seed := range uint64(60) {
		d := rand.New(rand.NewPCG(seed, 4))
		of := func(list ...string) string { return list[d.IntN(len(list))] }
		s := newAuditFixture(t, Options{Queue: 100}, edge, worlds.GatewayDoc("two", "class", "http"))
		s.runOnce()
		for range 40 {
			for range 1 + d.IntN(3) {
				value := of("a: 100", "a: 1", "overrides: {strategy: patch, a: 100}", "overrides: {strategy: patch, a: 2}")
				doc := of(
					onRoute(of("p", "q"), of("r", "s"), value), onGateway(of("p", "q"), of("edge", "two"), value),
					worlds.RouteDoc(of("r", "s"), of("[{}]", "[{name: x}, {}]"), of("edge", "two")),
					worlds.PolicyDoc("Paint", "app", "sel", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, selector: {}}]\n"+value),
					worlds.GatewayDoc(of("edge", "two"), of("class", "other"), of("http", "more")),
				)
				if d.IntN(3) == 0 {
					s.remove(doc)
				} else {
					s.put(doc)
				}
			}
			got := s.runOnce()
			v, _ := s.opts.Store.View()
			whole, err := s.audit(t.Context(), v, effective.Scope{All: true})
			require.NoError(t, err)
			var want []string
			for _, v := range whole {
				want = append(want, pathText(v.Path))
			}
			slices.Sort(want)
			require.Equal(t, want, got, "seed %d", seed)
			found += len(got)
		}
	}
	assert.Greater(t, found, 1000, "too few violations in the generated worlds")
}

func TestEventsReportNewViolationsAfterFirstRun(t *testing.T) {
	s := newAuditFixture(t, Options{}, edge, routeR, routeS, onRoute("p", "r", "a: 100"))
	s.runOnce()
	assert.Empty(t, s.events, "existing violations cause no Event")
	s.put(onRoute("q", "s", "a: 100"))
	s.runOnce()
	want := []string{"Warning RequirementUnmet Audit on gateway.networking.k8s.io/v1 HTTPRoute app/s (): a is 100"}
	assert.Equal(t, want, s.events)
	s.put(routeS)
	s.runOnce()
	assert.Equal(t, want, s.events, "one Event each")
	s.put(onRoute("q", "s", "a: 1"))
	s.runOnce()
	s.put(onRoute("q", "s", "a: 100"))
	s.runOnce()
	assert.Len(t, s.events, 2, "a recurring violation causes another Event")
}

func TestNotReadIsNoViolation(t *testing.T) {
	s := newAuditFixture(t, Options{}, edge, routeR, routeS, onRoute("p", "r", "b: 100"))
	assert.Empty(t, s.runOnce(), "in an audit of all paths")
	s.put(onRoute("q", "s", "a: 100\nb: 100"))
	assert.Equal(t, []string{pathS}, s.runOnce(), "in an audit of changes")
	assert.Equal(t, []string{"Warning RequirementUnmet Audit on gateway.networking.k8s.io/v1 HTTPRoute app/s (): a is 100"}, s.events)
	require.Len(t, s.lines, 1)
	assert.Contains(t, s.lines[0], `"reason"="RequirementUnmet"`)
	require.NoError(t, testutil.CollectAndCompare(s.Auditor, strings.NewReader(`
# HELP overrule_violations Violations in the current effective policies by reason, policy kind and the action for a write that introduces one.
# TYPE overrule_violations gauge
overrule_violations{action="Deny",policy_kind="Paint.example.com",reason="RequirementUnmet"} 1
`), "overrule_violations"))
}

func TestOnlyLeaderRecordsEvents(t *testing.T) {
	leads := false
	s := newAuditFixture(t, Options{Leading: func() bool { return leads }}, edge, routeR, routeS, worlds.RouteDoc("t", "[{}]", "edge"))
	s.runOnce()
	s.put(onRoute("p", "r", "a: 100"))
	s.runOnce()
	assert.Empty(t, s.events)
	leads = true
	s.put(onRoute("q", "s", "a: 100"))
	s.runOnce()
	assert.Len(t, s.events, 1)
	leads = false
	s.put(onRoute("u", "t", "a: 100"))
	s.runOnce()
	assert.Len(t, s.events, 1, "it does not lead any more")
}

func TestEventReferenceHasUID(t *testing.T) {
	located := func(_ context.Context, ref api.Ref) (*corev1.ObjectReference, error) {
		if ref.Name == "s" {
			return nil, errors.New("gone")
		}
		return &corev1.ObjectReference{APIVersion: "v", Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: "u1"}, nil
	}
	s := newAuditFixture(t, Options{Locate: located}, edge, routeR, routeS)
	s.runOnce()
	s.put(onRoute("p", "r", "a: 100"), onRoute("q", "s", "a: 100"))
	s.runOnce()
	assert.Equal(t, []string{
		"Warning RequirementUnmet Audit on v HTTPRoute app/r (u1): a is 100",
		"Warning RequirementUnmet Audit on gateway.networking.k8s.io/v1 HTTPRoute app/s (): a is 100",
	}, s.events)
	assert.Contains(t, strings.Join(s.lines, "\n"), `"cannot locate object of Event" "object"="HTTPRoute app/s" "cause"="gone"`)
}

func TestReportIsLimited(t *testing.T) {
	s := newAuditFixture(t, Options{}, edge)
	for i := range 25 {
		s.put(worlds.RouteDoc(fmt.Sprintf("r%02d", i), "[{}]", "edge"))
	}
	s.runOnce()
	s.put(onGateway("g", "edge", "a: 100"))
	assert.Len(t, s.runOnce(), 25)
	require.Len(t, s.events, 20)
	assert.Equal(t, "Warning RequirementUnmet Audit on gateway.networking.k8s.io/v1 HTTPRoute app/r19 (): (and 5 more violations) a is 100", s.events[19])
	require.Len(t, s.lines, 21)
	assert.Equal(t, `"level"=0 "msg"="violation" "more"=5`, s.lines[20])
	s.put(onGateway("g", "edge", "a: 1"))
	s.runOnce()
	assert.Contains(t, s.lines[21], `"level"=0 "msg"="violation resolved" "reason"="RequirementUnmet" "action"="Deny" "policyKind"="Paint.example.com" "path"="GatewayClass class > Gateway infra/edge`)
}

func TestSubject(t *testing.T) {
	gw := api.PathElement{Kind: "Gateway", Namespace: "infra", Name: "edge"}
	for name, c := range map[string]struct {
		path []api.PathElement
		want api.Ref
	}{
		"a path through a route is about it": {
			[]api.PathElement{{Kind: "GatewayClass", Name: "c"}, gw, {Kind: "GRPCRoute", Namespace: "app", Name: "r"}, {Kind: "Service", Namespace: "app", Name: "s"}},
			api.Ref{Group: api.GatewayGroup, Kind: "GRPCRoute", Namespace: "app", Name: "r"},
		},
		"one that ends at a listener is about its gateway": {
			[]api.PathElement{{Kind: "GatewayClass", Name: "c"}, gw, {Kind: "Listener", Namespace: "infra", Name: "edge", Section: "http"}},
			api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: "edge"},
		},
		"or about its listener set": {
			[]api.PathElement{gw, {Kind: "ListenerSet", Namespace: "app", Name: "s"}, {Kind: "Listener", Namespace: "app", Name: "s", Section: "http"}},
			api.Ref{Group: api.GatewayGroup, Kind: "ListenerSet", Namespace: "app", Name: "s"},
		},
		"one of a mesh is about its service": {
			[]api.PathElement{{Kind: "Namespace", Name: "app"}, {Kind: "Service", Namespace: "app", Name: "s"}},
			api.Ref{Kind: "Service", Namespace: "app", Name: "s"},
		},
		"a path of an unknown kind has no object": {[]api.PathElement{{Kind: "Bucket", Namespace: "app", Name: "b"}}, api.Ref{}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, subject(c.path)) })
	}
	s := newAuditFixture(t, Options{})
	assert.Nil(t, s.eventObject(t.Context(), api.Ref{}))
	assert.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Name: "s"}, s.eventObject(t.Context(), api.Ref{Kind: "Service", Name: "s"}))
}

func TestViolationsOfOneConstraintHaveDistinctKeys(t *testing.T) {
	one := api.Violation{Code: api.ReasonRequirementUnmet, Policy: &api.Ref{Kind: "C", Name: "c"}, Message: "one"}
	two := one
	two.Message = "two"
	set := byKey([]api.Violation{one, two})
	assert.Len(t, set, 2)
	everywhere := func([]api.PathElement) bool { return true }
	next, fresh, gone := set.replace([]api.Violation{two}, everywhere)
	assert.Len(t, next, 1)
	assert.Empty(t, fresh)
	assert.Len(t, gone, 1)
}

func TestMetrics(t *testing.T) {
	s := newAuditFixture(t, Options{}, edge, routeR, routeS, onGateway("g", "edge", "a: 100"))
	s.runOnce()
	s.put(routeS)
	s.runOnce()
	s.err = errors.New("no")
	s.put(routeS)
	require.Error(t, s.run(t.Context()))
	require.NoError(t, testutil.CollectAndCompare(s.Auditor, strings.NewReader(`
# HELP overrule_audit_runs_total Audit runs by scope (changed, all) and result (done, failed).
# TYPE overrule_audit_runs_total counter
overrule_audit_runs_total{result="done",scope="all"} 1
overrule_audit_runs_total{result="done",scope="changed"} 1
overrule_audit_runs_total{result="failed",scope="changed"} 1
# HELP overrule_violations Violations in the current effective policies by reason, policy kind and the action for a write that introduces one.
# TYPE overrule_violations gauge
overrule_violations{action="Deny",policy_kind="Paint.example.com",reason="RequirementUnmet"} 2
`)))
}

func TestAuditorRunsWhenReadyAndAfterEachChange(t *testing.T) {
	objects := snapshot.New("routes")
	audits := make(chan *snapshot.View, 10)
	fail := make(chan error, 1)
	var panics atomic.Bool
	s := New(Options{
		Store: objects, Delay: time.Millisecond, Log: logr.Discard(),
		Violations: func(_ context.Context, v *snapshot.View, _ effective.Scope) ([]api.Violation, error) {
			audits <- v
			if panics.CompareAndSwap(true, false) {
				panic("unexpected object")
			}
			select {
			case err := <-fail:
				return nil, err
			default:
				return nil, nil
			}
		},
	})
	assert.False(t, s.NeedLeaderElection())
	process.Run(t, s.Start)

	v, _ := objects.View()
	objects.Apply(snapshot.Put(worlds.Read(t, v, edge)))
	fail <- errors.New("no")
	objects.Listed("routes")
	first := <-audits
	assert.NotNil(t, first.Gateway("infra", "edge"))
	assert.Same(t, first, <-audits, "a failed run is repeated")

	panics.Store(true)
	objects.Apply(snapshot.Put(worlds.Read(t, v, worlds.GatewayDoc("two", "class", "http"))))
	for (<-audits).Gateway("infra", "two") == nil {
		// the previous change may be audited once more before
	}
	assert.NotNil(t, (<-audits).Gateway("infra", "two"), "a run that panicked is repeated")
}

func TestAuditorStopsDuringRun(t *testing.T) {
	objects := snapshot.New()
	v, _ := objects.View()
	objects.Apply(snapshot.Put(worlds.Read(t, v, edge)), snapshot.Put(worlds.Read(t, v, worlds.GatewayDoc("two", "class", "http"))))
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	s := New(Options{
		Store: objects, Delay: time.Millisecond, Log: logr.Discard(),
		Violations: func(context.Context, *snapshot.View, effective.Scope) ([]api.Violation, error) {
			looks++
			cancel()
			return nil, nil
		},
	})
	require.NoError(t, s.Start(ctx))
	assert.Equal(t, 1, looks)
	require.NoError(t, s.Start(ctx), "it does not start, either")
	assert.Equal(t, 1, looks)
}
