package annotations

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
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
	"overrule.dev/overrule/internal/note"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

const affectedPaint = "overrule.dev/PaintAffected"

func TestAWriteElsewhereRefreshesWhatItTouchesAndNothingElse(t *testing.T) {
	other := worlds.GatewayDoc("other", "class", "http")
	w := newWorld(t, Options{}, class, edge, other, routeR, routeS, worlds.RouteDoc("t", "[{}]", "other"), onRoute("p", "r", "a: 1"))
	assert.ElementsMatch(t, []string{"HTTPRoute app/r", "Paint app/p"}, w.settle(), "at first it looks at everything; what has nothing to say is right")

	w.put(onGateway("g", "edge", "overrides: {strategy: patch, a: 5}"))
	assert.ElementsMatch(t, []string{"Gateway infra/edge", "HTTPRoute app/r", "HTTPRoute app/s", "Paint app/p", "Paint infra/g"}, w.settle())
	assert.Contains(t, w.on("Paint app/p")[api.AnnotationOutcome], `"state":"Overridden"`)
	assert.Contains(t, w.on("HTTPRoute app/s")[api.AnnotationEffectivePolicy], `{"a":"infra/g"}`)

	assert.Empty(t, w.settle(), "its own writes make no others")
	w.put(routeR, edge, onGateway("g", "edge", "overrides: {strategy: patch, a: 5}"))
	assert.Empty(t, w.settle(), "nor does a write that says the same")

	w.remove(onGateway("g", "edge", ""))
	assert.ElementsMatch(t, []string{"Gateway infra/edge", "HTTPRoute app/r", "HTTPRoute app/s", "Paint app/p"}, w.settle())
	assert.Empty(t, w.on("HTTPRoute app/s"))
}

func TestOneWriteOverManyRoutesIsOneWriteOfEachAndThenSilence(t *testing.T) {
	w := newWorld(t, Options{}, class, edge)
	for i := range 300 {
		w.put(worlds.RouteDoc(fmt.Sprintf("r%03d", i), "[{}]", "edge"))
	}
	assert.Empty(t, w.settle())
	w.put(onGateway("g", "edge", "a: 5"))
	assert.Len(t, w.settle(), 300+2)
	assert.Empty(t, w.settle())
	w.put(onGateway("g", "edge", "a: 6"))
	assert.Empty(t, w.settle(), "no annotation depends on a value")
	w.put(onGateway("g", "edge", "b: 6"))
	assert.Len(t, w.settle(), 300, "the outcome and the mark on the gateway are as they were")
	n, oldest := w.pending.state(time.Now())
	assert.Zero(t, n)
	assert.Zero(t, oldest)
}

// However a world changes, the marks that are kept bit by bit are those that a look
// at everything makes.
func TestMarksAreKeptAsALookAtEverythingMakesThem(t *testing.T) {
	kept := 0
	for seed := range uint64(80) {
		d := rand.New(rand.NewPCG(seed, 7))
		of := func(list ...string) string { return list[d.IntN(len(list))] }
		w := newWorld(t, Options{Queue: 100}, class, edge, worlds.GatewayDoc("two", "class", "http"))
		w.settle()
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
			w.settle()
			v, _ := w.Store.View()
			for _, ref := range w.objects.all("") {
				has, _ := w.objects.get(ref)
				want, err := w.wanted(t.Context(), v, v.Get(ref), has.marks)
				require.NoError(t, err)
				got := w.marks[ref]
				if got == nil {
					got = &DesiredMarks{}
				}
				require.Equal(t, want.Hash(), got.Hash(), "seed %d: %s has %v, and is to have %v", seed, ref, got, want)
				if name := note.Name(v.Get(ref)); name != "" {
					text, err := note.Text(effective.NewEngine(), v, v.Get(ref), effective.NewBudget(t.Context(), math.MaxUint64), nil)
					require.NoError(t, err)
					require.Equal(t, text, got.Annotations[name], "seed %d: it is what is written with the object", seed)
				}
				kept += len(got.Annotations) + len(got.Conditions)
			}
		}
	}
	assert.Greater(t, kept, 5000, "the worlds are too dull to show anything")
}

func TestWhatIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		marks  snapshot.Marks
		docs   []string
		writes int
	}{
		"nothing speaks against it": {writes: 1},
		"it is being deleted":       {marks: snapshot.Marks{Deleting: true}},
		"it opted out":              {marks: snapshot.Marks{OptedOut: true}},
		"its namespace opted out":   {docs: []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {overrule.dev/refresh: \"false\"}}\n"}},
		"its namespace says something else": {
			docs: []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {overrule.dev/refresh: \"true\"}}\n"}, writes: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{}, append(c.docs, class, edge, onGateway("g", "edge", "a: 1"))...)
			w.settle()
			v, _ := w.Store.View()
			w.seen[worlds.Read(t, v, routeR).Ref()] = c.marks
			w.put(routeR)
			got := 0
			for _, ref := range w.settle() {
				if ref == "HTTPRoute app/r" {
					got++
				}
			}
			assert.Equal(t, c.writes, got)
		})
	}
}

func TestANamespaceThatOptsInAgainIsLookedAt(t *testing.T) {
	namespace := func(value string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {overrule.dev/refresh: \"" + value + "\"}}\n"
	}
	w := newWorld(t, Options{}, class, edge, routeR, namespace("false"), onGateway("g", "edge", "a: 1"))
	assert.NotContains(t, w.settle(), "HTTPRoute app/r")
	w.put(namespace("true"))
	assert.Equal(t, []string{"HTTPRoute app/r"}, w.settle())
}

func TestMarksThatSomebodyElseWroteAreMended(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	w.settle()
	v, _ := w.Store.View()
	ref := worlds.Read(t, v, routeR).Ref()
	w.marks[ref] = &DesiredMarks{Annotations: map[string]string{affectedPaint: "perhaps"}}
	w.put(routeR)
	assert.Equal(t, []string{"HTTPRoute app/r"}, w.settle())
	assert.Equal(t, "true", w.on("HTTPRoute app/r")[affectedPaint])
}

func TestAnObjectIsWrittenOnlyOnceInAWhile(t *testing.T) {
	w := newWorld(t, Options{Every: time.Hour}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	w.settle()
	w.put(onGateway("g", "edge", "b: 2"))
	assert.Empty(t, w.settle())
	n, oldest := w.pending.state(time.Now())
	assert.Equal(t, 1, n, "it waits")
	assert.Positive(t, oldest)
}

func TestTheMoreOftenAnObjectIsWrittenTheLongerItIsLeftAlone(t *testing.T) {
	var i inventory
	ref := api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: "r"}
	i.note([]snapshot.Observation{{Ref: ref, UID: "u"}})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var rests []string
	write := func(after time.Duration) {
		now = now.Add(after)
		i.wrote(ref, now, 5*time.Second)
		e, _ := i.get(ref)
		rests = append(rests, e.rest(5*time.Second).String())
	}
	write(0)
	for range 5 {
		e, _ := i.get(ref)
		write(e.rest(5 * time.Second))
	}
	write(2 * time.Minute)
	assert.Equal(t, []string{"5s", "10s", "20s", "40s", "1m0s", "1m0s", "5s"}, rests)
	e, _ := i.get(ref)
	assert.Equal(t, time.Hour, e.rest(time.Hour), "who asks for more gets it")
}

func TestWhatHasNoBearingOnAnyMarkIsNotLookedAt(t *testing.T) {
	const room = 3
	w := newWorld(t, Options{Queue: room}, class, edge, routeR)
	w.settle()
	<-w.changes.Wake()
	for i := range 2 * room {
		c := constraint.FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
		w.Store.Apply(snapshot.Put(c))
		w.Store.Apply(snapshot.Delete(c.Ref()))
		w.put(class) // the same again
	}
	assert.Empty(t, w.changes.Wake(), "there is nothing to look at")
	require.NoError(t, w.look(t.Context(), w.q))
	assert.Zero(t, w.q.Len())
}

func TestWhatMayMatterToAnyMarkHasEverythingLookedAt(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a policy kind": func(w *world) { w.Store.RemoveKind(api.PolicyKind{Group: worlds.Group, Kind: "Label"}) },
		"more than can be kept in mind": func(w *world) {
			w.put(routeS, worlds.RouteDoc("t", "[{}]", "edge"), worlds.RouteDoc("u", "[{}]", "edge"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Queue: 2}, class, edge, routeR)
			w.settle()
			change(w)
			assert.True(t, w.changes.Take().All)
		})
	}
}

func TestALookThatEndsInTheMiddleIsAnError(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	w.settle()
	w.put(onGateway("g", "edge", "a: 2"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.look(ctx, w.q), effective.ErrTooMuch)
}

func TestWhatIsNotWrittenIsToldAndTriedAgain(t *testing.T) {
	right := &RightError{User: "system:serviceaccount:o:overrule-refresher", Verb: "patch", Resource: "httproutes.gateway.networking.k8s.io", Cause: errors.New("forbidden")}
	for name, c := range map[string]struct {
		err    error
		result string
		again  bool
		says   string
	}{
		"the object is gone": {err: ErrGone, result: resultGone},
		"a right is missing": {err: right, result: resultForbidden, again: true,
			says: "system:serviceaccount:o:overrule-refresher may not patch httproutes.gateway.networking.k8s.io: give it that right by a ClusterRole with the label overrule.dev/aggregate-to-refresher"},
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
			w.settle()
			assert.Contains(t, w.on("Paint infra/g"), api.AnnotationOutcome, "others go on")
			assert.Equal(t, 1, w.counted.get()[c.result])
			n, _ := w.pending.state(time.Now())
			assert.Equal(t, c.again, n > 0)
			assert.Contains(t, w.logged(), c.says)
		})
	}
}

func TestAMissingRightIsToldOnceAndAskedForOnceAMinute(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, routeS, onGateway("g", "edge", "a: 1"))
	missing := true
	w.fail = func(ref api.Ref) error {
		if missing && ref.Kind == "HTTPRoute" {
			return &RightError{Cause: errors.New("no")}
		}
		return nil
	}
	w.settle()
	assert.Equal(t, 1, w.counted.get()[resultForbidden], "the other route is not tried")
	kind := api.PolicyKind{Group: api.GatewayGroup, Kind: "HTTPRoute"}
	w.barred[kind] = time.Now().Add(-time.Second) // a minute later
	w.put(worlds.RouteDoc("r", "[{}, {}]", "edge"))
	w.settle()
	assert.Equal(t, 2, w.counted.get()[resultForbidden])
	assert.Len(t, w.lines, 1)
	missing = false
	w.barred[kind] = time.Now().Add(-time.Second)
	w.put(worlds.RouteDoc("r", "[{}]", "edge"))
	w.settle()
	assert.Contains(t, w.logged(), "marks can be written again")
}

// otherwise is a cluster in which somebody else has the last word.
type otherwise struct{ *world }

func (o otherwise) Write(ctx context.Context, ref api.Ref, uid types.UID, w *DesiredMarks) (uint64, error) {
	_, err := o.world.Write(ctx, ref, uid, w)
	o.marks[ref] = &DesiredMarks{}
	o.see(ref)
	return 0, err
}

func TestAMarkThatIsNotWhatWasWrittenIsWrittenAgainLater(t *testing.T) {
	w := newWorld(t, Options{Every: time.Hour}, class, edge, onRoute("p", "r", "a: 1"))
	w.Cluster = otherwise{w}
	assert.Equal(t, []string{"Paint app/p"}, w.settle())
	assert.Equal(t, 1, w.counted.get()[resultOtherwise])
	n, _ := w.pending.state(time.Now())
	assert.Equal(t, 1, n)
}

func TestARefresherBeginsOnceTheStoreIsReadyAndEndsWithItsContext(t *testing.T) {
	w := newWorld(t, Options{Delay: time.Millisecond}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	assert.True(t, w.NeedLeaderElection())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Start(ctx) }()
	written := func(n int) func() bool {
		return func() bool {
			return testutil.ToFloat64(metric{w.Refresher, "overrule_refresh_writes_total"}) == float64(n)
		}
	}
	require.Eventually(t, written(3), time.Minute, time.Millisecond)
	w.put(routeS)
	require.Eventually(t, written(5), time.Minute, time.Millisecond, "the route, and the count of paths")
	cancel()
	require.NoError(t, <-ended)
}

func TestMetricsShowTheProgress(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, onGateway("g", "edge", "a: 1"))
	require.NoError(t, w.look(t.Context(), w.q))
	require.NoError(t, testutil.CollectAndCompare(w.Refresher, strings.NewReader(`
# HELP overrule_refresh_pending Objects whose annotations and conditions are yet to be looked at or written, on the replica that leads.
# TYPE overrule_refresh_pending gauge
overrule_refresh_pending 4
# HELP overrule_refresh_writes_total Attempts to write annotations and conditions, by result (written, otherwise, gone, forbidden, failed).
# TYPE overrule_refresh_writes_total counter
overrule_refresh_writes_total{result="failed"} 0
overrule_refresh_writes_total{result="forbidden"} 0
overrule_refresh_writes_total{result="gone"} 0
overrule_refresh_writes_total{result="otherwise"} 0
overrule_refresh_writes_total{result="written"} 0
`), "overrule_refresh_pending", "overrule_refresh_writes_total"))
	assert.Positive(t, testutil.ToFloat64(metric{w.Refresher, "overrule_refresh_oldest_seconds"}))
}

// metric is one of the metrics of a refresher: of those with labels the one of what
// was written.
type metric struct {
	*Refresher
	name string
}

// Collect implements prometheus.Collector.
func (m metric) Collect(ch chan<- prometheus.Metric) {
	all := make(chan prometheus.Metric, 100)
	m.Refresher.Collect(all)
	close(all)
	for one := range all {
		if strings.Contains(one.Desc().String(), `"`+m.name+`"`) {
			ch <- one
			return // results are in their order, and "written" is the first
		}
	}
}

func TestAPanicCostsTheMarksOfOneObjectAndNothingElse(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, routeS, onGateway("g", "edge", "a: 5"))
	w.fail = func(ref api.Ref) error {
		if ref.Name == "r" {
			panic("it cannot be written")
		}
		return nil
	}
	assert.Contains(t, w.settle(), "HTTPRoute app/s", "the others go on")
	assert.NotEmpty(t, w.on("HTTPRoute app/s"))
	assert.Empty(t, w.on("HTTPRoute app/r"))
	assert.Contains(t, strings.Join(w.lines, "\n"), "panic: it cannot be written")

	w.Engine = nil // whatever it asks of it panics
	w.put(onGateway("g", "edge", "a: 6"))
	require.ErrorIs(t, w.look(t.Context(), w.q), background.ErrPanic)
	assert.True(t, w.computing.TryLock(), "nobody waits for it")
}

func TestTheTokenOfThePathIsNotLogged(t *testing.T) {
	w := newWorld(t, Options{}, class, edge, routeR, onGateway("g", "edge", "a: 5"))
	w.fail = func(api.Ref) error { return errors.New(`Post "https://x.y.svc:443/validate/s3cr3t?timeout=3s": EOF`) }
	w.settle()
	log := strings.Join(w.lines, "\n")
	assert.Contains(t, log, `/validate/…?timeout=3s`)
	assert.NotContains(t, log, "s3cr3t")
}
