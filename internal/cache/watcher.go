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
	clients     *clients
	registry    *registry
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
		&sink[*snapshot.Definition]{
			store: s, kind: policykind.KindDefinition, log: w.registry.logger(sourceDefinitions),
			decode: decodeDefinition, target: w.registry, listed: func() {},
		})
	w.definitions.gvr = definitionsResource
	for _, b := range coreKinds {
		f := newReflector(b.resource, c.listWatch(b, b.versions[0]), b.example, &sink[snapshot.Object]{
			store: s, kind: b.kind, log: w.registry.logger(b.resource),
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
		f.cancel, f.health.onRestore, f.health.changes = cancel, w.noteRestore, &w.registry.changes
		group.Go(func() {
			defer cancel()
			f.run(ctx)
		})
	}
	// Reflectors of kinds are started by the reflector of the definitions, which is
	// part of the group itself: none is added after it has ended.
	w.registry.start = start
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

// Served returns the policy kinds whose writes are to be evaluated, sorted by group and
// resource: those that are read, and pending ones, since writes before the first list
// must not be admitted without evaluation.
//
// A kind that may not be listed is not included if it is known by its label alone (see
// Problems): otherwise users that can label a CRD could block its writes. A kind with a
// profile is included: it is configured to be evaluated, so the missing permission is
// an error.
func (w *Watcher) Served() []Served { return w.registry.served() }

// ResourcesInOlderVersions returns the resources of Gateway API that are read in an older version because
// v1 is not served: rules for v1 do not match their writes.
func (w *Watcher) ResourcesInOlderVersions() []schema.GroupVersionResource {
	return w.registry.resourcesInOlderVersions()
}

// Profiles returns the policy kinds that have a profile, and those that have only a
// label, sorted: which profile is in force, and which are refused.
func (w *Watcher) Profiles() []api.ProfileInForce { return w.registry.currentKinds().InForce() }

// ProfileStatuses returns the state of each PolicyProfile, sorted by name.
func (w *Watcher) ProfileStatuses() []ProfileStatus { return w.registry.profileStatuses() }

// ConstraintStatuses returns the state of each constraint, sorted by reference.
func (w *Watcher) ConstraintStatuses() []ConstraintStatus { return w.registry.constraintStatuses() }

// StatusesChanged returns a channel that receives a value when ProfileStatuses or
// ConstraintStatuses may have changed. It supports one reader.
func (w *Watcher) StatusesChanged() <-chan struct{} { return w.registry.statusChanged }

// Resource returns the group of a kind and its plural name, which is empty if the kind
// is not defined (rights.Resource).
func (w *Watcher) Resource(kind api.PolicyKind) (group, plural string) {
	if d := w.registry.currentKinds().DefinitionOf(kind); d != nil {
		plural = strings.TrimSuffix(d.Name, "."+kind.Group)
	}
	return kind.Group, plural
}

// ServedResource returns the resource and version in which policies of a kind, or
// objects of a kind of Gateway API, are read; ok is false if they are not.
func (w *Watcher) ServedResource(kind api.PolicyKind) (r schema.GroupVersionResource, ok bool) {
	return w.registry.resourceOf(kind)
}

// Discovered reports whether the definitions and the profiles have been listed. Before
// that, Served is incomplete.
func (w *Watcher) Discovered() bool { return w.registry.discovered() }

// Changed returns a channel that receives a value when the result of Served may have
// changed. There is one channel, for one reader.
func (w *Watcher) Changed() <-chan struct{} { return w.registry.kindsChanged }

// Problems returns what should be read but is not, sorted by resource: kinds whose list
// is forbidden, kinds of Gateway API that are not served in a supported version, which
// count as not installed, and invalid profiles. A forbidden policy kind stays pending,
// and the store becomes ready without it; it does not become ready without
// PolicyProfiles or a kind of Gateway API.
func (w *Watcher) Problems() []Problem { return w.registry.allProblems() }

// Health returns the state of the watch of each resource, sorted by source. Kinds of
// Gateway API whose CustomResourceDefinition is not installed are not included.
func (w *Watcher) Health() []SourceHealth {
	out := w.health()
	slices.SortFunc(out, func(a, b SourceHealth) int { return strings.Compare(a.Source, b.Source) })
	return out
}

// health is Health in any order.
func (w *Watcher) health() []SourceHealth {
	out := append(w.registry.health(), w.definitions.health.get())
	for _, f := range w.core {
		out = append(out, f.health.get())
	}
	return out
}
