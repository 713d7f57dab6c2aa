package annotations

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
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

var (
	edge   = worlds.GatewayDoc("edge", "class", "http")
	class  = "kind: GatewayClass\nmetadata: {name: class}\nspec: {controllerName: example.com/c}\n"
	routeR = worlds.RouteDoc("r", "[{}]", "edge")
	routeS = worlds.RouteDoc("s", "[{}]", "edge")
)

// world is a Controller with a fake cluster, which stores the written marks and reports
// them to the store as observed. It runs in virtual time.
type world struct {
	*testing.T
	*Controller

	// mu guards what follows while the Controller runs. Tests use it between calls of
	// after.
	mu     sync.Mutex
	marks  map[api.Ref]*Marks
	seen   map[api.Ref]snapshot.Marks // without their hash
	writes []api.Ref
	write  func(api.Ref, *Marks) (*Marks, error) // what is stored instead of what is written
	lines  []string
}

// inWorld runs a test in a world with a Controller that has not started, and a store that
// is not ready.
func inWorld(t *testing.T, docs []string, run func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, marks: make(map[api.Ref]*Marks), seen: make(map[api.Ref]snapshot.Marks)}
		log := funcr.New(func(_, args string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lines = append(w.lines, args)
		}, funcr.Options{})
		w.Controller = New(Options{Store: snapshot.New("objects"), Engine: effective.NewEngine(), Write: w.Write, Affected: true, Log: log})
		for _, k := range worlds.World(t, routeR).Kinds() {
			w.opts.Store.AddKind(k)
			w.opts.Store.KindListed(k.Ref())
		}
		w.put(docs...)
		run(w)
	})
}

// inRunning runs a test in a world whose Controller has completed its first resync.
func inRunning(t *testing.T, docs []string, run func(w *world)) {
	t.Helper()
	inWorld(t, docs, func(w *world) {
		process.Run(w, w.Start)
		w.opts.Store.Listed("objects")
		w.settle()
		run(w)
	})
}

// Write implements Options.Write.
func (w *world) Write(_ context.Context, ref api.Ref, uid types.UID, marks *Marks) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, ref)
	if uid != "u" {
		return errors.New("another object has the name")
	}
	if w.write != nil {
		marks, err = w.write(ref, marks)
	}
	if err == nil {
		w.marks[ref] = marks
		w.observed(ref)
	}
	return err
}

// observed reports the current state of an object to the store.
func (w *world) observed(ref api.Ref) {
	m := w.seen[ref]
	if has := w.marks[ref]; has != nil {
		m.Hash = has.Hash()
	}
	w.opts.Store.Observe(snapshot.Observation{Ref: ref, UID: "u", Marks: m})
}

func (w *world) ref(doc string) api.Ref {
	v, _ := w.opts.Store.View()
	return worlds.Read(w.T, v, doc).Ref()
}

func (w *world) put(docs ...string) {
	w.Helper()
	for _, doc := range docs {
		v, _ := w.opts.Store.View()
		o := worlds.Read(w.T, v, doc)
		w.opts.Store.Apply(snapshot.Put(o))
		w.observed(o.Ref())
	}
}

func (w *world) remove(doc string) {
	w.Helper()
	ref := w.ref(doc)
	w.opts.Store.Apply(snapshot.Delete(ref))
	delete(w.marks, ref)
	w.opts.Store.Observe(snapshot.Observation{Ref: ref, Deleted: true})
}

// settle waits until all changes are processed and what was written is checked again. It
// returns what was written.
func (w *world) settle() []string { return w.after(2 * checkDelay) }

// after returns what was written for a time.
func (w *world) after(d time.Duration) []string {
	w.mu.Lock()
	w.writes = nil
	w.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
	var out []string
	for _, ref := range w.writes {
		out = append(out, ref.String())
	}
	return out
}

// textOf returns the annotation of an object.
func (w *world) textOf(doc string) string {
	ref := w.ref(doc)
	v, _ := w.opts.Store.View()
	if has := w.marks[ref]; has != nil {
		return has.Annotations[Name(v.Get(ref))]
	}
	return ""
}

func (w *world) logged() string { return strings.Join(w.lines, "\n") }

// requireSame fails unless the marks of all objects are those that a full computation
// returns. It returns the number of marks.
func (w *world) requireSame() (marks int) {
	w.Helper()
	v, _ := w.opts.Store.View()
	fresh := &Controller{opts: Options{Engine: effective.NewEngine(), Affected: true}}
	w.Controller.seen.Range(func(key, value any) bool {
		ref, seen := key.(api.Ref), value.(snapshot.Observation)
		want, err := fresh.marksOf(w.Context(), v, v.Get(ref), seen.Marks)
		require.NoError(w, err)
		got := w.marks[ref]
		if got == nil {
			got = &Marks{}
		}
		require.Equal(w, want.Hash(), got.Hash(), "%s has %v, want %v", ref, got, want)
		marks += len(got.Annotations) + len(got.Conditions)
		return true
	})
	return marks
}
