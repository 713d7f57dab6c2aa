package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	// Log gets what comes, changes and goes, and what cannot be read. Its zero
	// value logs nothing.
	Log logr.Logger
	// Exempt is a namespace whose policies take no part, since their writes are
	// not judged: the server's own. Empty for none.
	Exempt string
}

// Watcher keeps a store up to date with a cluster. It is safe for concurrent
// use.
type Watcher struct {
	clients     *clients
	registry    *registry
	definitions *reflector
	core        []*reflector
	staleness      atomic.Pointer[staleness] // nil before the first look
	sources       sourceGroup
}

// New returns a Watcher that feeds the store once it is started. The store is
// one that was made with Sources.
func New(cfg *rest.Config, s *snapshot.Store, opts Options) (*Watcher, error) {
	c, err := newClients(cfg, 0)
	if err != nil {
		return nil, err
	}
	known, err := policykind.NewProfiles()
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	w := &Watcher{clients: c, registry: newRegistry(s, c, known, opts), sources: newSourceGroup()}
	w.definitions = newReflector(sourceDefinitions, c.definitionsListWatch(), &apiextensionsv1.CustomResourceDefinition{},
		&sink[*definition]{
			decode: decodeDefinition, target: w.registry, log: w.registry.logger(sourceDefinitions), listed: func() {},
			observer: observer{s, policykind.KindDefinition},
		})
	for _, b := range []*builtin{&namespaces, &services} {
		w.core = append(w.core, newReflector(b.resource, c.listWatch(b, b.versions[0]), b.example, &sink[snapshot.Object]{
			decode: b.decode, target: objectTarget{store: s, kind: b.kind},
			log: w.registry.logger(b.resource), listed: func() { s.Listed(b.resource) }, observer: observer{s, b.kind},
		}))
	}
	return w, nil
}

// Start feeds the store until the context ends, and returns when all that it
// started has ended. It may be called once.
func (w *Watcher) Start(ctx context.Context) error {
	var crew sync.WaitGroup
	start := func(f *reflector) {
		ctx, cancel := context.WithCancel(ctx)
		f.cancel = cancel
		f.health.join(&w.sources)
		crew.Go(func() {
			defer f.health.leave()
			defer cancel()
			f.run(ctx, &w.sources)
		})
	}
	// Feeds of kinds are started from that of the definitions, which is part
	// of the crew itself: the crew does not grow once it has ended.
	w.registry.start = start
	for _, f := range w.core {
		start(f)
	}
	start(w.definitions)
	crew.Go(func() { w.supervise(ctx) })
	crew.Go(func() { w.updateWaiting(ctx) })
	crew.Wait()
	return nil
}

// NeedLeaderElection returns false: each replica has a store of its own.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Served returns the policy kinds whose writes are to be judged, by group and
// resource: those that are read, and those that will be. One that is pending
// belongs to them, since what is written before it is listed must not pass
// unjudged.
//
// A kind that may not be listed is left out if it is known by its label alone
// (see Problems): whoever may label a CRD could close its kind to writes
// otherwise. One with a profile stays: someone asked for it to be judged, so
// something is broken.
func (w *Watcher) Served() []Served { return w.registry.served() }

// Older returns the resources of Gateway API that are read in an older version
// than v1, since v1 is not served: rules for v1 do not match their writes.
func (w *Watcher) Older() []schema.GroupVersionResource { return w.registry.older() }

// Profiles returns the policy kinds that have a profile, and those that have a
// label alone, sorted: whose profile is in force, and which are not.
func (w *Watcher) Profiles() []api.ProfileInForce { return w.registry.profilesInForce() }

// ProfileStatuses returns what became of each PolicyProfile, by name.
func (w *Watcher) ProfileStatuses() []ProfileStatus { return w.registry.profileStatuses() }

// ConstraintStatuses returns what became of each constraint, by reference.
func (w *Watcher) ConstraintStatuses() []ConstraintStatus { return w.registry.constraintStatuses() }

// StatusesChanged returns a channel that gets a value when ProfileStatuses or
// ConstraintStatuses may have changed since the last one was taken. It is for
// one reader.
func (w *Watcher) StatusesChanged() <-chan struct{} { return w.registry.statusChanged }

// Resource returns the group of a kind and its plural name, which is empty if
// nobody defines the kind (rights.Resource).
func (w *Watcher) Resource(kind api.PolicyKind) (group, plural string) {
	return kind.Group, w.registry.plural(kind)
}

// ServedResource returns the resource, in its version, in which the policies of a kind are
// read, or the objects of one of Gateway API's; ok is false if they are not.
func (w *Watcher) ServedResource(kind api.PolicyKind) (r schema.GroupVersionResource, ok bool) {
	return w.registry.resourceOf(kind)
}

// Discovered reports whether the definitions and the profiles have been listed.
// Before, Served lacks kinds that the cluster has.
func (w *Watcher) Discovered() bool { return w.registry.discovered() }

// Changed returns a channel that gets a value when what Served returns may
// have changed since the last one was taken. There is one channel: it is for
// one reader.
func (w *Watcher) Changed() <-chan struct{} { return w.registry.kindsChanged }

// Problems returns what is not read though it should, by resource: kinds whose
// list is forbidden, those of Gateway API that are not served in a version that
// can be read, which count as not installed, and profiles that make no sense. A
// forbidden policy kind stays pending in the store, and the store gets ready
// without it; without PolicyProfiles or a kind of Gateway API it does not.
func (w *Watcher) Problems() []Problem { return w.registry.allProblems() }

// Health returns how fresh each resource is that is being read, by source. A
// kind of Gateway API whose CustomResourceDefinition is not there is not among
// them.
func (w *Watcher) Health() []SourceHealth {
	out := append(w.registry.health(), w.definitions.health.get())
	for _, f := range w.core {
		out = append(out, f.health.get())
	}
	slices.SortFunc(out, func(a, b SourceHealth) int { return strings.Compare(a.Source, b.Source) })
	return out
}
