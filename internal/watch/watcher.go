package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/internal/store"
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
	definitions *feed
	namespaces  *feed
}

// New returns a Watcher that feeds the store once it is started. The store is
// one that was made with Sources.
func New(cfg *rest.Config, s *store.Store, opts Options) (*Watcher, error) {
	c, err := newClients(cfg, 0)
	if err != nil {
		return nil, err
	}
	known, err := builtinProfiles()
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	w := &Watcher{clients: c, registry: newRegistry(s, c, opts)}
	w.definitions = newFeed(sourceDefinitions, c.allDefinitions(), &apiextensionsv1.CustomResourceDefinition{},
		&sink[*definition]{
			decode: known.decode, target: w.registry,
			log: opts.Log.WithValues("source", sourceDefinitions), listed: func() {},
		})
	w.namespaces = newFeed(sourceNamespaces, c.all(&namespaces), namespaces.example,
		&sink[store.Object]{
			decode: namespaces.decode, target: objects{store: s, kind: namespaces.kind},
			log: opts.Log.WithValues("source", sourceNamespaces), listed: func() { s.Listed(sourceNamespaces) },
		})
	return w, nil
}

// Start feeds the store until the context ends, and returns when all that it
// started has ended. It may be called once.
func (w *Watcher) Start(ctx context.Context) error {
	var crew sync.WaitGroup
	start := func(f *feed) {
		ctx, cancel := context.WithCancel(ctx)
		f.cancel = cancel
		crew.Go(func() {
			defer cancel()
			f.run(ctx)
		})
	}
	// Feeds of kinds are started from that of the definitions, which is part
	// of the crew itself: the crew does not grow once it has ended.
	w.registry.start = start
	start(w.namespaces)
	start(w.definitions)
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
// otherwise. One with a built-in profile stays: the right to read it is part
// of every installation, so something is broken.
func (w *Watcher) Served() []Served { return w.registry.served() }

// Surveyed reports whether the definitions have been listed. Before, Served
// lacks kinds that the cluster has.
func (w *Watcher) Surveyed() bool { return w.registry.isSurveyed() }

// Changed returns a channel that gets a value when what Served returns may
// have changed since the last one was taken. There is one channel: it is for
// one reader.
func (w *Watcher) Changed() <-chan struct{} { return w.registry.changed }

// Problems returns the kinds that are not read though they should, by
// resource: those whose list is forbidden, and those of Gateway API that are
// not served in version v1, which count as not installed. A forbidden policy
// kind stays pending in the store, and the store gets ready without it; without
// a forbidden kind of Gateway API it does not.
func (w *Watcher) Problems() []Problem { return w.registry.found() }

// Health returns how fresh each resource is that is being read, by source. A
// kind of Gateway API whose CustomResourceDefinition is not there is not among
// them.
func (w *Watcher) Health() []SourceHealth {
	out := append(w.registry.health(), w.definitions.contact.get(), w.namespaces.contact.get())
	slices.SortFunc(out, func(a, b SourceHealth) int { return strings.Compare(a.Source, b.Source) })
	return out
}
