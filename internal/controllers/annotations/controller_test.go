package annotations

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/worlds"
)

const affectedPaint = "overrule.dev/PaintAffected"

func TestWriteUpdatesMarksOfAffectedObjectsOnly(t *testing.T) {
	other, routeT := worlds.GatewayDoc("other", "class", "http"), worlds.RouteDoc("t", "[{}]", "other")
	p, g := onRoute("p", "r", "a: 1"), onGateway("g", "edge", "overrides: {strategy: patch, a: 5}")
	inWorld(t, []string{class, edge, other, routeR, routeS, routeT, p}, func(w *world) {
		process.Run(w, w.Start)
		assert.Empty(t, w.settle(), "the store is not ready")
		w.opts.Store.Listed("objects")
		assert.ElementsMatch(t, []string{"HTTPRoute app/r", "Paint app/p"}, w.settle(), "a full resync at the start; objects without marks are not written")

		w.put(g)
		assert.ElementsMatch(t, []string{"Gateway infra/edge", "HTTPRoute app/r", "HTTPRoute app/s", "Paint app/p", "Paint infra/g"}, w.settle())
		assert.Contains(t, w.textOf(p), `"state":"Overridden"`)
		assert.Contains(t, w.textOf(routeS), `{"a":"infra/g"}`)

		assert.Empty(t, w.settle(), "its own writes cause no others")
		w.put(routeR, edge, g)
		assert.Empty(t, w.settle(), "nor does a write without changes")

		w.remove(g)
		assert.ElementsMatch(t, []string{"Gateway infra/edge", "HTTPRoute app/r", "HTTPRoute app/s", "Paint app/p"}, w.settle())
		assert.Empty(t, w.marks[w.ref(routeS)].Annotations)
	})
}

func TestGatewayPolicyUpdatesEachRouteOnce(t *testing.T) {
	const routes = 50
	inRunning(t, []string{class, edge}, func(w *world) {
		for i := range routes {
			w.put(worlds.RouteDoc(fmt.Sprintf("r%03d", i), "[{}]", "edge"))
		}
		assert.Empty(t, w.settle())
		w.put(onGateway("g", "edge", "a: 5"))
		assert.Len(t, w.settle(), routes+2)
		w.put(onGateway("g", "edge", "a: 6"))
		assert.Empty(t, w.settle(), "no annotation depends on a value")
		w.put(onGateway("g", "edge", "b: 6"))
		assert.Len(t, w.settle(), routes, "the outcome and the mark on the gateway do not change")
	})
}

// Incremental updates must result in the same marks as a full computation, whatever
// changes.
func TestIncrementalUpdatesEqualFullComputation(t *testing.T) {
	marks := 0
	for seed := range uint64(60) {
		d := rand.New(rand.NewPCG(seed, 7))
		inRunning(t, []string{class, edge, worlds.GatewayDoc("two", "class", "http")}, func(w *world) {
			for range 15 {
				w.changeAtRandom(d)
				w.settle()
				marks += w.requireSame()
			}
		})
	}
	assert.Greater(t, marks, 1500, "too few marks in the generated worlds")
}

// changeAtRandom puts or removes up to three objects.
func (w *world) changeAtRandom(d *rand.Rand) {
	of := func(list ...string) string { return list[d.IntN(len(list))] }
	for range 1 + d.IntN(3) {
		value := of("a: 1", "b: 1", "overrides: {strategy: patch, a: 2}", "defaults: {a: 3}")
		doc := of(
			onRoute(of("p", "q"), of("r", "s"), value), onGateway(of("p", "q"), of("edge", "two"), value),
			worlds.PolicyDoc("Label", "app", of("l", "m"), "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: "+of("r", "s")+"}]\n"),
			worlds.RouteDoc(of("r", "s"), of("[{}]", "[{name: x}, {}]"), of("edge", "two")), worlds.RouteDoc(of("r", "s"), "[{}]"),
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
}

func namespaceApp(refresh string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {overrule.dev/refresh: \"" + refresh + "\"}}\n"
}

func TestObjectsThatAreNotUpdated(t *testing.T) {
	for name, c := range map[string]struct {
		marks snapshot.Marks
		docs  []string
		want  []string
	}{
		"not opted out":           {want: []string{"HTTPRoute app/r"}},
		"it is being deleted":     {marks: snapshot.Marks{Deleting: true}},
		"it opted out":            {marks: snapshot.Marks{OptedOut: true}},
		"its namespace opted out": {docs: []string{namespaceApp("false")}},
		"its namespace opted in":  {docs: []string{namespaceApp("true")}, want: []string{"HTTPRoute app/r"}},
	} {
		t.Run(name, func(t *testing.T) {
			inRunning(t, append(c.docs, class, edge, onGateway("g", "edge", "a: 1")), func(w *world) {
				w.seen[w.ref(routeR)] = c.marks
				w.put(routeR)
				assert.ElementsMatch(t, append([]string{"Paint infra/g", "Gateway infra/edge"}, c.want...), w.settle())
			})
		})
	}
}

func TestNamespaceOptsInAgain(t *testing.T) {
	inRunning(t, []string{class, edge, routeR, namespaceApp("false"), onGateway("g", "edge", "a: 1")}, func(w *world) {
		assert.Empty(t, w.textOf(routeR))
		w.put(namespaceApp("true"))
		assert.Equal(t, []string{"HTTPRoute app/r"}, w.settle())
	})
}

func TestMarksOfOtherWritersAreCorrected(t *testing.T) {
	inRunning(t, []string{class, edge, routeR, onGateway("g", "edge", "a: 1")}, func(w *world) {
		ref := w.ref(routeR)
		w.marks[ref] = &Marks{Annotations: map[string]string{affectedPaint: "perhaps"}}
		w.put(routeR)
		assert.Equal(t, []string{"HTTPRoute app/r"}, w.settle())
		assert.Equal(t, "true", w.marks[ref].Annotations[affectedPaint])
	})
}

func TestWritesOfOneObjectAreRateLimited(t *testing.T) {
	inRunning(t, []string{class, edge, routeR}, func(w *world) {
		var writes []string
		for i := range 8 {
			w.put(onRoute("p", "r", fmt.Sprintf("x%d: 1", i)))
			writes = append(writes, w.after(time.Second)...)
		}
		assert.ElementsMatch(t, []string{"HTTPRoute app/r", "Paint app/p"}, writes, "each once within eight seconds")
	})
}

// As the mutating webhook of a replica whose cache is old: the leader does not observe a
// write that changes nothing.
func TestWrittenObjectIsCheckedAgain(t *testing.T) {
	inRunning(t, []string{class, edge, routeR}, func(w *world) {
		w.write = func(ref api.Ref, _ *Marks) (*Marks, error) { return w.marks[ref], nil }
		w.put(onRoute("p", "r", "a: 1"))
		assert.ElementsMatch(t, []string{"HTTPRoute app/r", "Paint app/p"}, w.after(checkDelay))
		w.write = nil
		w.settle()
		w.requireSame()
	})
}

func TestWritesOfMarksCauseNoWork(t *testing.T) {
	inRunning(t, []string{class, edge, routeR}, func(w *world) {
		w.put(class)
		assert.Empty(t, w.changes.Wake(), "no change is pending")
	})
}

func TestFailedWritesAreLoggedAndRetried(t *testing.T) {
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New(`Post "https://x.y.svc:443/validate/s3cr3t?timeout=3s": EOF`) },
		"a panic":  func() error { panic("it cannot be written") },
	} {
		t.Run(name, func(t *testing.T) {
			inRunning(t, []string{class, edge, onGateway("g", "edge", "a: 1")}, func(w *world) {
				w.write = func(ref api.Ref, m *Marks) (*Marks, error) {
					if ref.Name == "r" {
						return nil, fail()
					}
					return m, nil
				}
				w.put(routeR, routeS)
				got := w.settle()
				assert.Contains(t, got, "HTTPRoute app/s", "other objects are updated")
				tries := strings.Count(strings.Join(got, " "), "app/r")
				assert.Greater(t, tries, 1)
				assert.Less(t, tries, 10)
				assert.Regexp(t, `Reconciler error.*"object"="HTTPRoute app/r"`, w.logged())
				assert.NotContains(t, w.logged(), "s3cr3t", "the path token is not logged")
				w.write = nil
				w.after(maxDelay)
				w.requireSame()
			})
		})
	}
}

func TestFailureToFindStaleMarksCausesFullResync(t *testing.T) {
	inRunning(t, []string{class, edge, routeR, onGateway("g", "edge", "a: 1")}, func(w *world) {
		engine := w.opts.Engine
		w.opts.Engine = nil // each use panics
		w.put(onGateway("g", "edge", "b: 1"))
		w.after(2 * changesDelay)
		w.opts.Engine = engine
		w.put(routeS)
		assert.Contains(t, w.settle(), "HTTPRoute app/r")
	})
}

func TestSecondTermResyncs(t *testing.T) {
	inWorld(t, []string{class, edge, routeR, onGateway("g", "edge", "a: 1")}, func(w *world) {
		w.opts.Store.Listed("objects")
		w.write = func(api.Ref, *Marks) (*Marks, error) { return nil, errors.New("no answer") }
		stop := process.Run(w, w.Start)
		w.after(changesDelay + minDelay - time.Nanosecond)
		w.put(onGateway("g", "edge", "b: 1"))
		stop()
		require.NoError(t, testutil.GatherAndCompare(crmetrics.Registry, strings.NewReader(`
# HELP workqueue_depth Current depth of workqueue by workqueue and priority
# TYPE workqueue_depth gauge
workqueue_depth{controller="overrule-annotations",name="overrule-annotations",priority=""} 0
`), "workqueue_depth"), "nothing is pending while it does not lead")

		w.write = nil
		stop = process.Run(w, w.Start)
		assert.Len(t, w.settle(), 3, "what the first term has not written")
		stop()
	})
}
