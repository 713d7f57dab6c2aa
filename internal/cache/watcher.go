package cache

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Options of a Watcher.
type Options struct {
	// Log receives changes of the kinds and errors. The zero value logs nothing.
	Log logr.Logger
	// Exempt is a namespace whose policies are ignored because its writes are not
	// evaluated: the namespace of the server. Empty for none.
	Exempt string
	// EventTimeout is how long CatchUp waits for events before it lists a resource in full; 0
	// for a second.
	EventTimeout time.Duration
}

// Watcher keeps a store up to date with a cluster. It is safe for concurrent use.
type Watcher struct {
	clients *clients
	*registry
	definitions *reflector
	core        []*reflector
	staleness   atomic.Pointer[staleness] // nil before the first check
	stopped     chan struct{}             // closed when Start is to end
	// restored receives what a source has found out about storage. relistedAt is when
	// everything was to be listed again for the last time.
	restored   chan restore
	relistedAt time.Time
	restores   atomic.Uint64

	eventTimeout time.Duration // see Options
}

// New returns a Watcher that feeds the store once it is started. The store must have
// been made with Sources.
func New(cfg *rest.Config, s *snapshot.Store, opts Options) (*Watcher, error) {
	c, err := newClients(cfg, 0)
	if err != nil {
		return nil, err
	}
	w := &Watcher{clients: c, registry: newRegistry(s, c, opts), stopped: make(chan struct{}), restored: make(chan restore, 1), eventTimeout: cmp.Or(opts.EventTimeout, eventTimeout)}
	w.definitions = newReflector(sourceDefinitions, c.definitionsListWatch(), &apiextensionsv1.CustomResourceDefinition{},
		&sink{
			store: s, kind: policykind.KindDefinition, log: w.logger(sourceDefinitions),
			decode: decodeDefinition, target: w.registry, listed: func() {},
		})
	w.definitions.gvr = definitionsResource
	for i := range coreKinds {
		b := &coreKinds[i]
		f := newReflector(b.resource, c.listWatch(b, b.versions[0]), b.example, &sink{
			store: s, kind: b.kind, log: w.logger(b.resource),
			decode: b.decode, target: objectTarget{store: s, kind: b.kind}, listed: func() { s.Listed(b.resource) },
		})
		f.gvr = schema.GroupVersionResource{Version: b.versions[0], Resource: b.resource}
		w.core = append(w.core, f)
	}
	return w, nil
}

// Start feeds the store until ctx ends, and returns after all goroutines that it
// started. It may be called once.
func (w *Watcher) Start(ctx context.Context) error {
	context.AfterFunc(ctx, func() { close(w.stopped) })
	var group sync.WaitGroup
	start := func(f *reflector) {
		ctx, cancel := context.WithCancel(ctx)
		f.cancel, f.health.onRestore, f.health.changes = cancel, w.noteRestore, &w.changes
		group.Go(func() {
			defer cancel()
			f.run(ctx)
		})
	}
	// Reflectors of kinds are started by the reflector of the definitions, which is
	// part of the group itself: none is added after it has ended.
	w.start = start
	for _, f := range w.core {
		start(f)
	}
	start(w.definitions)
	group.Go(func() { w.supervise(ctx) })
	group.Wait()
	return nil
}

// NeedLeaderElection returns false: each replica has a store of its own.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Profiles returns the policy kinds that have a profile, and those that have only a
// label, sorted: which profile is in force, and which are refused.
func (w *Watcher) Profiles() []api.ProfileInForce { return w.currentKinds().InForce() }

// StatusesChanged returns a channel that receives a value when Statuses may have changed.
// It supports one reader.
func (w *Watcher) StatusesChanged() <-chan struct{} { return w.statusChanged }

// Resource returns the group of a kind and its plural name, which is empty if the kind
// is not defined (rights.Resource).
func (w *Watcher) Resource(kind api.PolicyKind) (group, plural string) {
	if d := w.currentKinds().DefinitionOf(kind); d != nil {
		plural = strings.TrimSuffix(d.Name, "."+kind.Group)
	}
	return kind.Group, plural
}

// Changed returns a channel that receives a value when the result of Served may have
// changed. There is one channel, for one reader.
func (w *Watcher) Changed() <-chan struct{} { return w.kindsChanged }

// Health returns the state of the watch of each resource, sorted by source. Kinds of
// Gateway API whose CustomResourceDefinition is not installed are not included.
func (w *Watcher) Health() []SourceHealth {
	out := w.health()
	slices.SortFunc(out, func(a, b SourceHealth) int { return strings.Compare(a.Source, b.Source) })
	return out
}

// health is Health in any order.
func (w *Watcher) health() []SourceHealth {
	var out []SourceHealth
	for _, f := range w.reflectors() {
		out = append(out, f.health.get())
	}
	return out
}
