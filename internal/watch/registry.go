package watch

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"overrule.dev/overrule/internal/store"
)

// registry starts and stops the feeds of kinds as their
// CustomResourceDefinitions come, change and go. It is the target of theirs.
type registry struct {
	store   *store.Store
	clients *clients
	log     logr.Logger
	exempt  string // the namespace whose policies take no part
	// start runs a feed in a goroutine until its cancel is called.
	start func(*feed)
	// changed gets a token when what served returns has changed.
	changed chan struct{}

	mu       sync.Mutex
	reading  map[string]*kind // by the name of the definition
	problems map[string]error // likewise
	surveyed bool             // the definitions were listed
	// waiting are the policy kinds of the first list that were not listed yet.
	waiting map[string]bool
}

// kind is a kind that is being read.
type kind struct {
	*definition
	*feed
	listed bool
	// forbidden is why it may not be listed. It may have been listed before.
	forbidden error
}

func newRegistry(s *store.Store, c *clients, o Options) *registry {
	return &registry{
		store: s, clients: c, log: o.Log, exempt: o.Exempt, changed: make(chan struct{}, 1),
		reading: make(map[string]*kind), problems: make(map[string]error), waiting: make(map[string]bool),
	}
}

func (r *registry) put(d *definition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adopt(d)
	r.settle()
}

func (r *registry) remove(name cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(name.Name)
	r.settle()
}

func (r *registry) replace(all []*definition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropOthers(all) // first: a kind may have moved from one definition to another
	for _, d := range all {
		r.adopt(d)
	}
	if !r.surveyed {
		r.surveyed = true
		r.survey()
	}
	r.settle()
}

func (r *registry) dropOthers(all []*definition) {
	keep := make(map[string]bool, len(all))
	for _, d := range all {
		keep[d.name] = true
	}
	for _, known := range []([]string){slices.Sorted(maps.Keys(r.reading)), slices.Sorted(maps.Keys(r.problems))} {
		for _, name := range known {
			if !keep[name] {
				r.drop(name)
			}
		}
	}
}

// survey ends the wait for what the first list of definitions does not have,
// and begins that for the policy kinds that it has.
func (r *registry) survey() {
	for i := range gatewayKinds {
		if b := &gatewayKinds[i]; r.reading[b.definition()] == nil {
			r.store.Listed(b.resource)
		}
	}
	for name, k := range r.reading {
		if k.policy != nil {
			r.waiting[name] = true
		}
	}
	r.store.Listed(sourceDefinitions)
	r.notify() // of no kinds, too
}

// settle tells the store when no policy kind is waited for. A kind that may
// not be listed is not: it is a Problem, and stays pending.
func (r *registry) settle() {
	if !r.surveyed {
		return
	}
	for name := range r.waiting {
		if k := r.reading[name]; k == nil || k.listed || k.forbidden != nil {
			delete(r.waiting, name)
		}
	}
	if len(r.waiting) == 0 {
		r.store.Listed(sourcePolicies)
	}
}

// adopt reads a kind as its definition says from now on.
func (r *registry) adopt(d *definition) {
	old := r.reading[d.name]
	if old != nil && old.same(d) {
		return
	}
	r.drop(d.name)
	switch {
	case d.err != nil:
		r.problem(d.name, d.err)
	case d.policy != nil:
		r.startPolicies(d)
	case d.gateway != nil:
		r.startGateway(d)
	}
}

func (r *registry) startPolicies(d *definition) {
	r.store.AddKind(d.policy)
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(d.resource.GroupVersion().WithKind(d.policy.Kind))
	into := &sink[store.Object]{decode: policies(d.policy), target: objects{r.store, d.policy.Ref(), r.exempt}}
	k := r.begin(d, newFeed(d.name, r.clients.allPolicies(d.resource), example, r.prepare(d.name, into)))
	r.log.Info("a policy kind is known", "definition", d.name, "version", d.resource.Version,
		"profile", d.policy.Source, "class", d.policy.Class)
	into.listed = func() { r.policiesListed(k) }
	r.start(k.feed)
	r.notify()
}

func (r *registry) startGateway(d *definition) {
	b := d.gateway
	into := &sink[store.Object]{decode: b.decode, target: objects{store: r.store, kind: b.kind}}
	k := r.begin(d, newFeed(b.resource, r.clients.all(b), b.example, r.prepare(b.resource, into)))
	into.listed = func() { r.gatewayListed(k) }
	r.start(k.feed)
}

func (r *registry) prepare(source string, into *sink[store.Object]) *sink[store.Object] {
	into.log = r.log.WithValues("source", source)
	return into
}

func (r *registry) begin(d *definition, f *feed) *kind {
	k := &kind{definition: d, feed: f}
	f.refused = func(err error) { r.refused(k, err) }
	r.reading[d.name] = k
	return k
}

// drop stops reading a kind and forgets its objects.
func (r *registry) drop(name string) {
	delete(r.problems, name)
	k := r.reading[name]
	if k == nil {
		return
	}
	delete(r.reading, name)
	k.close() // before the objects go, or a late event would bring some back
	k.cancel()
	if k.gateway != nil {
		r.store.Replace(k.gateway.kind, nil)
		r.store.Listed(k.gateway.resource) // a kind that is gone has no objects
		return
	}
	r.store.RemoveKind(k.policy.Ref())
	r.log.Info("a policy kind is gone", "definition", name)
	r.notify()
}

func (r *registry) gatewayListed(k *kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[k.name] == k {
		r.listed(k)
		r.store.Listed(k.gateway.resource)
	}
}

func (r *registry) policiesListed(k *kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[k.name] != k {
		return // it was replaced meanwhile
	}
	wasForbidden := k.forbidden != nil
	r.listed(k)
	r.store.KindListed(k.policy.Ref())
	r.settle()
	if wasForbidden {
		r.notify()
	}
}

func (r *registry) listed(k *kind) {
	k.listed, k.forbidden = true, nil
	delete(r.problems, k.name)
}

// refused books a list that is forbidden.
func (r *registry) refused(k *kind, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[k.name] != k || k.forbidden != nil {
		return
	}
	k.forbidden = err
	r.problem(k.name, fmt.Errorf("%w; grant get, list and watch on %s", err, k.name))
	r.settle()
	r.notify()
}

func (r *registry) problem(name string, err error) {
	r.problems[name] = err
	r.log.Error(err, "a kind cannot be read", "definition", name)
}

func (r *registry) notify() {
	select {
	case r.changed <- struct{}{}:
	default: // a token is waiting, and one is enough
	}
}
