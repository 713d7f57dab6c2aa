package annotations

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// onRoute is a policy on a route, onGateway one on a gateway.
func onRoute(name, route, spec string) string {
	return worlds.PolicyDoc("Paint", "app", name, "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: "+route+"}]\n"+spec)
}

func onGateway(name, gw, spec string) string {
	return worlds.PolicyDoc("Paint", "infra", name, "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: "+gw+"}]\n"+spec)
}

var (
	edge   = worlds.GatewayDoc("edge", "class", "http")
	class  = "kind: GatewayClass\nmetadata: {name: class}\nspec: {controllerName: example.com/c}\n"
	routeR = worlds.RouteDoc("r", "[{}]", "edge")
	routeS = worlds.RouteDoc("s", "[{}]", "edge")
)

// world is a Controller with a fake cluster, which stores the written marks and reports
// them to the store as observed.
type world struct {
	*testing.T
	*Controller
	q workQueue

	mu     sync.Mutex
	marks  map[api.Ref]*DesiredMarks
	seen   map[api.Ref]snapshot.Marks // without their hash
	writes []api.Ref
	fail   func(api.Ref) error
	lines  []string
}

func newWorld(t *testing.T, o Options, docs ...string) *world {
	t.Helper()
	w := &world{T: t, marks: make(map[api.Ref]*DesiredMarks), seen: make(map[api.Ref]snapshot.Marks)}
	o.Store, o.Engine, o.Cluster, o.Affected = snapshot.New(), effective.NewEngine(), w, !o.Affected
	o.Log = funcr.New(func(_, args string) { w.lines = append(w.lines, args) }, funcr.Options{})
	if o.Every == 0 {
		o.Every = time.Nanosecond
	}
	w.Controller = New(o)
	w.q = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[api.Ref](time.Hour, time.Hour))
	t.Cleanup(w.q.ShutDown)
	for _, k := range worlds.World(t, worlds.RouteDoc("r", "[{}]")).Kinds() {
		w.opts.Store.AddKind(k)
		w.opts.Store.KindListed(k.Ref())
	}
	w.put(docs...)
	return w
}

// Write implements Cluster.
func (w *world) Write(_ context.Context, ref api.Ref, uid types.UID, marks *DesiredMarks) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, ref)
	if w.fail != nil {
		if err := w.fail(ref); err != nil {
			return 0, err
		}
	}
	require.Equal(w, types.UID("u"), uid)
	w.marks[ref] = marks
	w.observe(ref)
	return marks.Hash(), nil
}

// observe reports the current state of an object to the store.
func (w *world) observe(ref api.Ref) {
	m := w.seen[ref]
	if has := w.marks[ref]; has != nil {
		m.Hash = has.Hash()
	}
	w.opts.Store.Observe(snapshot.Observation{Ref: ref, UID: "u", Marks: m})
}

func (w *world) put(docs ...string) {
	w.Helper()
	for _, doc := range docs {
		v, _ := w.opts.Store.View()
		o := worlds.Read(w.T, v, doc)
		w.opts.Store.Apply(snapshot.Put(o))
		w.observe(o.Ref())
	}
}

func (w *world) remove(doc string) {
	w.Helper()
	v, _ := w.opts.Store.View()
	ref := worlds.Read(w.T, v, doc).Ref()
	w.opts.Store.Apply(snapshot.Delete(ref))
	delete(w.marks, ref)
	w.opts.Store.Observe(snapshot.Observation{Ref: ref, Deleted: true})
}

// reconcileAll enqueues and reconciles until the queue is empty, and returns what was
// written.
func (w *world) reconcileAll() []string {
	w.Helper()
	w.writes = nil
	for round := 0; ; round++ {
		require.Less(w, round, 10, "it does not converge: %v", w.writes)
		require.NoError(w, w.enqueueChanged(w.Context(), w.q))
		if w.q.Len() == 0 {
			break
		}
		for w.q.Len() > 0 {
			w.processNext(w.Context(), w.q)
		}
	}
	var out []string
	for _, ref := range w.writes {
		out = append(out, ref.String())
	}
	return out
}

// marksOf returns the annotations, or the messages of the conditions, of an object.
func (w *world) marksOf(ref string) map[string]string {
	out := make(map[string]string)
	for at, marks := range w.marks {
		if at.String() != ref {
			continue
		}
		maps.Copy(out, marks.Annotations)
		for _, c := range marks.Conditions {
			out[c.Type] = c.Message
		}
	}
	return out
}

func (w *world) logged() string { return strings.Join(w.lines, "\n") }
