package annotations

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

const affectedPaint = "overrule.dev/PaintAffected"

func TestWriteUpdatesMarksOfAffectedObjectsOnly(t *testing.T) {
	other := worlds.GatewayDoc("other", "class", "http")
	w := newWorld(t, Options{}, class, edge, other, routeR, routeS, worlds.RouteDoc("t", "[{}]", "other"), onRoute("p", "r", "a: 1"))
	assert.ElementsMatch(t, []string{"HTTPRoute app/r", "Paint app/p"}, w.reconcileAll(), "a full resync at the start; objects without marks are not written")

	w.put(onGateway("g", "edge", "overrides: {strategy: patch, a: 5}"))
	assert.ElementsMatch(t, []string{"Gateway infra/edge", "HTTPRoute app/r", "HTTPRoute app/s", "Paint app/p", "Paint infra/g"}, w.reconcileAll())
	assert.Contains(t, w.marksOf("Paint app/p")[api.AnnotationOutcome], `"state":"Overridden"`)
	assert.Contains(t, w.marksOf("HTTPRoute app/s")[api.AnnotationEffectivePolicy], `{"a":"infra/g"}`)

	assert.Empty(t, w.reconcileAll(), "its own writes cause no others")
	w.put(routeR, edge, onGateway("g", "edge", "overrides: {strategy: patch, a: 5}"))
	assert.Empty(t, w.reconcileAll(), "nor does a write without changes")

	w.remove(onGateway("g", "edge", ""))
	assert.ElementsMatch(t, []string{"Gateway infra/edge", "HTTPRoute app/r", "HTTPRoute app/s", "Paint app/p"}, w.reconcileAll())
	assert.Empty(t, w.marksOf("HTTPRoute app/s"))
}

func TestGatewayPolicyUpdatesEachRouteOnce(t *testing.T) {
	w := newWorld(t, Options{}, class, edge)
	for i := range 300 {
		w.put(worlds.RouteDoc(fmt.Sprintf("r%03d", i), "[{}]", "edge"))
	}
	assert.Empty(t, w.reconcileAll())
	w.put(onGateway("g", "edge", "a: 5"))
	assert.Len(t, w.reconcileAll(), 300+2)
	assert.Empty(t, w.reconcileAll())
	w.put(onGateway("g", "edge", "a: 6"))
	assert.Empty(t, w.reconcileAll(), "no annotation depends on a value")
	w.put(onGateway("g", "edge", "b: 6"))
	assert.Len(t, w.reconcileAll(), 300, "the outcome and the mark on the gateway do not change")
	n, oldest := w.pending.snapshot(time.Now())
	assert.Zero(t, n)
	assert.Zero(t, oldest)
}

// Incremental updates must result in the same marks as a full resync, whatever changes.
func TestIncrementalUpdatesEqualFullResync(t *testing.T) {
	kept := 0
	for seed := range uint64(80) {
		d := rand.New(rand.NewPCG(seed, 7))
		of := func(list ...string) string { return list[d.IntN(len(list))] }
		w := newWorld(t, Options{Queue: 100}, class, edge, worlds.GatewayDoc("two", "class", "http"))
		w.reconcileAll()
		for range 30 {
			for range 1 + d.IntN(3) {
				value := of("a: 1", "b: 1", "overrides: {strategy: patch, a: 2}", "defaults: {a: 3}")
				doc := of(
					onRoute(of("p", "q"), of("r", "s"), value), onGateway(of("p", "q"), of("edge", "two"), value),
					worlds.RouteDoc(of("r", "s"), of("[{}]", "[{name: x}, {}]"), of("edge", "two")),
					worlds.RouteTo("HTTPRoute", "app", of("r", "s"), "[{}]", worlds.ToSet("app", "set")),
					worlds.SetDoc("app", "set", of("edge", "two"), "more"),
					worlds.PolicyDoc("Paint", "app", "set", "targetRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: set}]\n"+value),
					worlds.PolicyDoc("Paint", "app", "sel", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, selector: {}}]\n"+value),
					worlds.GatewayDoc(of("edge", "two"), of("class", "other"), of("http", "more")),
				)
				if d.IntN(3) == 0 {
					w.remove(doc)
				} else {
					w.put(doc)
				}
			}
			w.reconcileAll()
			v, _ := w.opts.Store.View()
			for _, ref := range w.inventory.all("") {
				has, _ := w.inventory.get(ref)
				want, err := w.desiredMarks(t.Context(), v, v.Get(ref), has.marks)
				require.NoError(t, err)
				got := w.marks[ref]
				if got == nil {
					got = &DesiredMarks{}
				}
				require.Equal(t, want.Hash(), got.Hash(), "seed %d: %s has %v, want %v", seed, ref, got, want)
				if name := Name(v.Get(ref)); name != "" {
					text, err := Text(effective.NewEngine(), v, v.Get(ref), effective.NewBudget(t.Context(), math.MaxUint64), nil)
					require.NoError(t, err)
					require.Equal(t, text, got.Annotations[name], "seed %d: the same text as at admission", seed)
				}
				kept += len(got.Annotations) + len(got.Conditions)
			}
		}
	}
	assert.Greater(t, kept, 5000, "too few marks in the generated worlds")
}

func TestObjectsThatAreNotUpdated(t *testing.T) {
	for name, c := range map[string]struct {
		marks  snapshot.Marks
		docs   []string
		writes int
	}{
		"not opted out":           {writes: 1},
		"it is being deleted":     {marks: snapshot.Marks{Deleting: true}},
		"it opted out":            {marks: snapshot.Marks{OptedOut: true}},
		"its namespace opted out": {docs: []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {overrule.dev/refresh: \"false\"}}\n"}},
		"its namespace opted in": {
			docs: []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {overrule.dev/refresh: \"true\"}}\n"}, writes: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{}, append(c.docs, class, edge, onGateway("g", "edge", "a: 1"))...)
			w.reconcileAll()
			v, _ := w.opts.Store.View()
			w.seen[worlds.Read(t, v, routeR).Ref()] = c.marks
			w.put(routeR)
			got := 0
			for _, ref := range w.reconcileAll() {
				if ref == "HTTPRoute app/r" {
					got++
				}
			}
			assert.Equal(t, c.writes, got)
		})
	}
}

func TestNamespaceOptsInAgain(t *testing.T) {
	namespace := func(value string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {overrule.dev/refresh: \"" + value + "\"}}\n"
	}
	w := newWorld(t, Options{}, class, edge, routeR, namespace("false"), onGateway("g", "edge", "a: 1"))
	assert.NotContains(t, w.reconcileAll(), "HTTPRoute app/r")
	w.put(namespace("true"))
	assert.Equal(t, []string{"HTTPRoute app/r"}, w.reconcileAll())
}

func TestMarksOfOtherWritersAreCorrected(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	w.reconcileAll()
	v, _ := w.opts.Store.View()
	ref := worlds.Read(t, v, routeR).Ref()
	w.marks[ref] = &DesiredMarks{Annotations: map[string]string{affectedPaint: "perhaps"}}
	w.put(routeR)
	assert.Equal(t, []string{"HTTPRoute app/r"}, w.reconcileAll())
	assert.Equal(t, "true", w.marksOf("HTTPRoute app/r")[affectedPaint])
}

func TestWritesOfOneObjectAreRateLimited(t *testing.T) {
	w := newWorld(t, Options{Every: time.Hour}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	w.reconcileAll()
	w.put(onGateway("g", "edge", "b: 2"))
	assert.Empty(t, w.reconcileAll())
	n, oldest := w.pending.snapshot(time.Now())
	assert.Equal(t, 1, n, "it waits")
	assert.Positive(t, oldest)
}

func TestWriteIntervalGrowsWithRewrites(t *testing.T) {
	var i inventory
	ref := api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: "r"}
	i.observe([]snapshot.Observation{{Ref: ref, UID: "u"}})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var rests []string
	write := func(after time.Duration) {
		now = now.Add(after)
		i.recordWrite(ref, now, 5*time.Second)
		e, _ := i.get(ref)
		rests = append(rests, e.writeInterval(5*time.Second).String())
	}
	write(0)
	for range 5 {
		e, _ := i.get(ref)
		write(e.writeInterval(5 * time.Second))
	}
	write(2 * time.Minute)
	assert.Equal(t, []string{"5s", "10s", "20s", "40s", "1m0s", "1m0s", "5s"}, rests)
	e, _ := i.get(ref)
	assert.Equal(t, time.Hour, e.writeInterval(time.Hour), "a longer interval is respected")
}

func TestIgnoredEvents(t *testing.T) {
	const room = 3
	w := newWorld(t, Options{Queue: room}, class, edge, routeR)
	w.reconcileAll()
	<-w.changes.Wake()
	for i := range 2 * room {
		c := constraint.FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
		w.opts.Store.Apply(snapshot.Put(c))
		w.opts.Store.Apply(snapshot.Delete(c.Ref()))
		w.put(class) // unchanged
	}
	assert.Empty(t, w.changes.Wake(), "no change is pending")
	require.NoError(t, w.enqueueChanged(t.Context(), w.q))
	assert.Zero(t, w.q.Len())
}

func TestEventsThatCauseFullResync(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a policy kind": func(w *world) { w.opts.Store.RemoveKind(api.PolicyKind{Group: worlds.Group, Kind: "Label"}) },
		"more changes than the queue holds": func(w *world) {
			w.put(routeS, worlds.RouteDoc("t", "[{}]", "edge"), worlds.RouteDoc("u", "[{}]", "edge"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Queue: 2}, class, edge, routeR)
			w.reconcileAll()
			change(w)
			assert.True(t, w.changes.Take().All)
		})
	}
}

func TestCanceledEnqueueIsAnError(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	w.reconcileAll()
	w.put(onGateway("g", "edge", "a: 2"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.enqueueChanged(ctx, w.q), effective.ErrTooMuch)
}

func TestFailedWritesAreLoggedAndRetried(t *testing.T) {
	right := &RightError{User: "system:serviceaccount:o:overrule-refresher", Verb: "patch", Resource: "httproutes.gateway.networking.k8s.io", Cause: errors.New("forbidden")}
	for name, c := range map[string]struct {
		err    error
		result string
		again  bool
		says   string
	}{
		"object not found": {err: ErrGone, result: resultGone},
		"a permission is missing": {err: right, result: resultForbidden, again: true,
			says: "system:serviceaccount:o:overrule-refresher is not allowed to patch httproutes.gateway.networking.k8s.io: grant it with a ClusterRole that has the label overrule.dev/aggregate-to-refresher"},
		"it is denied": {err: errors.New("denied the request"), result: resultFailed, again: true, says: `"object"="HTTPRoute app/r" "cause"="denied the request"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{}, class, edge, routeR, routeS, onGateway("g", "edge", "a: 1"))
			w.fail = func(ref api.Ref) error {
				if ref.Name == "r" {
					return c.err
				}
				return nil
			}
			w.reconcileAll()
			assert.Contains(t, w.marksOf("Paint infra/g"), api.AnnotationOutcome, "other objects are updated")
			assert.Equal(t, 1, w.results.get()[c.result])
			n, _ := w.pending.snapshot(time.Now())
			assert.Equal(t, c.again, n > 0)
			assert.Contains(t, w.logged(), c.says)
		})
	}
}

func TestForbiddenKindIsLoggedOnceAndRetriedEachMinute(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, routeS, onGateway("g", "edge", "a: 1"))
	missing := true
	w.fail = func(ref api.Ref) error {
		if missing && ref.Kind == "HTTPRoute" {
			return &RightError{Cause: errors.New("no")}
		}
		return nil
	}
	w.reconcileAll()
	assert.Equal(t, 1, w.results.get()[resultForbidden], "the other route is not tried")
	kind := api.PolicyKind{Group: api.GatewayGroup, Kind: "HTTPRoute"}
	w.blockedUntil[kind] = time.Now().Add(-time.Second) // a minute later
	w.put(worlds.RouteDoc("r", "[{}, {}]", "edge"))
	w.reconcileAll()
	assert.Equal(t, 2, w.results.get()[resultForbidden])
	assert.Len(t, w.lines, 1)
	missing = false
	w.blockedUntil[kind] = time.Now().Add(-time.Second)
	w.put(worlds.RouteDoc("r", "[{}]", "edge"))
	w.reconcileAll()
	assert.Contains(t, w.logged(), "marks can be written again")
}

// divergingCluster is a cluster in which another client overwrites all marks.
type divergingCluster struct{ *world }

func (o divergingCluster) Write(ctx context.Context, ref api.Ref, uid types.UID, w *DesiredMarks) (uint64, error) {
	_, err := o.world.Write(ctx, ref, uid, w)
	o.marks[ref] = &DesiredMarks{}
	o.observe(ref)
	return 0, err
}

func TestDifferingMarksAreRewrittenLater(t *testing.T) {
	w := newWorld(t, Options{Every: time.Hour}, class, edge, onRoute("p", "r", "a: 1"))
	w.opts.Cluster = divergingCluster{w}
	assert.Equal(t, []string{"Paint app/p"}, w.reconcileAll())
	assert.Equal(t, 1, w.results.get()[resultOtherwise])
	n, _ := w.pending.snapshot(time.Now())
	assert.Equal(t, 1, n)
}

func TestControllerStartsWhenStoreIsReady(t *testing.T) {
	w := newWorld(t, Options{Delay: time.Millisecond}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	assert.True(t, w.NeedLeaderElection())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Start(ctx) }()
	written := func(n int) func() bool {
		return func() bool {
			return testutil.ToFloat64(metric{w.Controller, "overrule_annotation_updates_total"}) == float64(n)
		}
	}
	require.Eventually(t, written(3), time.Minute, time.Millisecond)
	w.put(routeS)
	require.Eventually(t, written(5), time.Minute, time.Millisecond, "the route, and the count of paths")
	cancel()
	require.NoError(t, <-ended)
}

func TestSecondTermResyncs(t *testing.T) {
	w := newWorld(t, Options{Delay: time.Millisecond}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()
		return func() {
			cancel()
			require.NoError(t, <-ended)
		}
	}
	var failed atomic.Bool
	w.fail = func(api.Ref) error {
		failed.Store(true)
		return errors.New("no answer")
	}
	stop := start()
	require.Eventually(t, failed.Load, time.Minute, time.Millisecond)
	stop()
	assert.Zero(t, testutil.ToFloat64(metric{w.Controller, "overrule_annotation_updates_pending"}), "nothing is pending while it does not lead")
	assert.Nil(t, w.lastView, "a replica that does not lead keeps no view")

	w.fail = nil
	stop = start()
	require.Eventually(t, func() bool {
		return testutil.ToFloat64(metric{w.Controller, "overrule_annotation_updates_total"}) == 3
	}, time.Minute, time.Millisecond, "what the first term has not written")
	stop()
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	require.NoError(t, w.enqueueChanged(t.Context(), w.q))
	require.NoError(t, testutil.CollectAndCompare(w.Controller, strings.NewReader(`
# HELP overrule_annotation_updates_pending Objects whose annotations and conditions are pending a check or a write. Reported by the leader only.
# TYPE overrule_annotation_updates_pending gauge
overrule_annotation_updates_pending 4
# HELP overrule_annotation_updates_total Writes of annotations and conditions by result (written, otherwise, gone, forbidden, failed).
# TYPE overrule_annotation_updates_total counter
overrule_annotation_updates_total{result="failed"} 0
overrule_annotation_updates_total{result="forbidden"} 0
overrule_annotation_updates_total{result="gone"} 0
overrule_annotation_updates_total{result="otherwise"} 0
overrule_annotation_updates_total{result="written"} 0
`), "overrule_annotation_updates_pending", "overrule_annotation_updates_total"))
	assert.Positive(t, testutil.ToFloat64(metric{w.Controller, "overrule_annotation_updates_oldest_seconds"}))
}

// metric is one metric of a Controller, for labeled ones that with the result
// "written".
type metric struct {
	*Controller
	name string
}

// Collect implements prometheus.Collector.
func (m metric) Collect(ch chan<- prometheus.Metric) {
	all := make(chan prometheus.Metric, 100)
	m.Controller.Collect(all)
	close(all)
	for one := range all {
		if strings.Contains(one.Desc().String(), `"`+m.name+`"`) {
			ch <- one
			return // "written" is the first result
		}
	}
}

func TestPanicAffectsOneObjectOnly(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, routeS, onGateway("g", "edge", "a: 5"))
	w.fail = func(ref api.Ref) error {
		if ref.Name == "r" {
			panic("it cannot be written")
		}
		return nil
	}
	assert.Contains(t, w.reconcileAll(), "HTTPRoute app/s", "the other objects are updated")
	assert.NotEmpty(t, w.marksOf("HTTPRoute app/s"))
	assert.Empty(t, w.marksOf("HTTPRoute app/r"))
	assert.Contains(t, strings.Join(w.lines, "\n"), "panic: it cannot be written")

	w.opts.Engine = nil // each use panics
	w.put(onGateway("g", "edge", "a: 6"))
	require.ErrorIs(t, w.enqueueChanged(t.Context(), w.q), background.ErrPanic)
	assert.True(t, w.computeMu.TryLock(), "the lock is released")
}

func TestPathTokenIsNotLogged(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, onGateway("g", "edge", "a: 5"))
	w.fail = func(api.Ref) error { return errors.New(`Post "https://x.y.svc:443/validate/s3cr3t?timeout=3s": EOF`) }
	w.reconcileAll()
	log := strings.Join(w.lines, "\n")
	assert.Contains(t, log, `/validate/…?timeout=3s`)
	assert.NotContains(t, log, "s3cr3t")
}
