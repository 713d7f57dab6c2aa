package cache

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// registry starts and stops the feeds of kinds as their
// CustomResourceDefinitions and profiles come, change and go. It is the target
// of both: each event is booked, and then what is read is brought in line with
// all that is known (reconcile).
type registry struct {
	store   *snapshot.Store
	clients *clients
	log     logr.Logger
	exempt  string // the namespace whose policies take no part
	// start runs a feed in a goroutine until its cancel is called.
	start func(*feed)
	// changed gets a token when what served returns has changed.
	changed chan struct{}
	// judged gets one when what became of profiles or constraints may have.
	judged chan struct{}

	mu       sync.Mutex
	defined  map[string]*definition         // by name
	firsts   map[api.PolicyKind]*definition // of these, those that count
	profiles *policykind.Profiles
	written  map[string]*profile // the cluster's own, by name
	demands  map[api.Ref]*demand // its constraints
	reading  map[string]*kind    // by the name of the definition
	problems map[string]error    // likewise
	// surveyed tells that the definitions were listed, profiled that the
	// profiles were, or that there are none: no policy kind is read before.
	surveyed, profiled bool
	// waiting are the policy kinds of the first list that were not listed yet.
	waiting map[string]bool
}

// kind is a kind that is being read.
type kind struct {
	*definition
	*feed
	policy *policykind.Kind // nil for those of the hierarchy, and our own
	listed bool
	// kept tells that what an earlier feed listed stays in the view until this one
	// has a list.
	kept bool
	// forbidden is why it may not be listed. It may have been listed before.
	forbidden error
	// broken is why it has not been listed for so long that nobody waits for it.
	broken error
}

func newRegistry(s *snapshot.Store, c *clients, known *policykind.Profiles, o Options) *registry {
	r := &registry{
		store: s, clients: c, log: o.Log, exempt: o.Exempt, profiles: known,
		changed: make(chan struct{}, 1), judged: make(chan struct{}, 1),
		defined: make(map[string]*definition), written: make(map[string]*profile),
		demands: make(map[api.Ref]*demand),
		reading: make(map[string]*kind), problems: make(map[string]error), waiting: make(map[string]bool),
	}
	s.Subscribe(r.targetsChanged)
	return r
}

func (r *registry) put(d *definition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.defined[d.name]
	r.defined[d.name] = d
	r.reconcile()
	if was != nil && (was.status != d.status || !maps.Equal(was.scaling, d.scaling)) {
		r.notify()
	}
}

func (r *registry) remove(name cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.defined, name.Name)
	r.reconcile()
}

func (r *registry) replace(all []*definition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.defined = make(map[string]*definition, len(all))
	for _, d := range all {
		r.defined[d.name] = d
	}
	first := !r.surveyed
	r.surveyed = true
	r.reconcile()
	r.notify() // the subresources of kinds that stay may be others
	if first {
		r.survey()
	}
}

// survey ends the wait for what the first list of definitions does not have.
func (r *registry) survey() {
	for i := range gatewayKinds {
		if b := &gatewayKinds[i]; r.reading[b.definition()] == nil {
			r.store.Listed(b.resource)
		}
	}
	for i := range constraintKinds {
		if k := &constraintKinds[i]; r.reading[k.definition()] == nil {
			r.store.Listed(k.resource)
		}
	}
	r.store.Listed(sourceDefinitions)
}

// reconcile reads what is to be read, as it is to be read, and nothing else.
func (r *registry) reconcile() {
	r.firsts = firsts(maps.Values(r.defined))
	r.read(profilesDefinition) // first: when it goes, so do all profiles
	first := r.settleProfiles()
	// What is not to be read is stopped before anything is begun: a kind may
	// have moved from one definition to another.
	for _, name := range slices.Sorted(maps.Keys(r.reading)) {
		if k := r.reading[name]; !r.isRight(k) && !r.goesOn(k) {
			r.stop(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.defined)) {
		r.read(name)
	}
	maps.DeleteFunc(r.problems, func(name string, _ error) bool { return r.defined[name] == nil })
	if first {
		r.await()
	}
	r.settle()
}

// settleProfiles ends the wait for the profiles once they are listed, or if
// there can be none, and reports whether it did.
func (r *registry) settleProfiles() bool {
	k := r.reading[profilesDefinition]
	if r.profiled || !r.surveyed || k != nil && !k.listed {
		return false
	}
	r.profiled = true
	r.store.Listed(sourceProfiles)
	return true
}

// await begins the wait for the policy kinds of the first list.
func (r *registry) await() {
	for name, k := range r.reading {
		if k.policy != nil {
			r.waiting[name] = true
		}
	}
	r.notify() // of no kinds, too
}

// settle tells the store when no policy kind is waited for. A kind that may
// not be listed, or that the API server does not give out, is not: it is a
// Problem, and stays pending.
func (r *registry) settle() {
	if !r.profiled {
		return
	}
	for name := range r.waiting {
		if k := r.reading[name]; k == nil || k.listed || k.forbidden != nil || k.broken != nil {
			delete(r.waiting, name)
		}
	}
	if len(r.waiting) == 0 {
		r.store.Listed(sourcePolicies)
	}
}

// isRight reports whether a kind is read as it is to be.
func (r *registry) isRight(k *kind) bool {
	d := r.counting(k.name)
	if d == nil || d.resource != k.resource || d.namespaced != k.namespaced {
		return false
	}
	policy, err := d.kind(r.profiles)
	return err == nil && sameKind(policy, k.policy)
}

// counting returns a definition, nil if another one of its kind counts.
func (r *registry) counting(name string) *definition {
	if d := r.defined[name]; d != nil && r.firsts[d.of] == d {
		return d
	}
	return nil
}

// goesOn reports whether the kind that is read is still to be read, in whatever way:
// its objects stay in the view until they are listed again. Those of a kind that
// is not served any more, or is no policy kind, are dropped.
func (r *registry) goesOn(k *kind) bool {
	d := r.counting(k.name)
	switch {
	case d == nil || !d.served():
		return false
	case k.gateway != nil:
		return true
	case k.policy == nil:
		return false // profiles and constraints have one version
	}
	policy, err := d.kind(r.profiles)
	return err == nil && policy != nil && policy.Ref() == k.policy.Ref()
}

func sameKind(a, b *policykind.Kind) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.Source == b.Source && a.Name == b.Name && a.Schema().Same(b.Schema()) && reflect.DeepEqual(a.PolicyProfileSpec, b.PolicyProfileSpec)
}

// read reads a kind as its definition and its profile say from now on.
func (r *registry) read(name string) {
	k, d := r.reading[name], r.defined[name]
	if k != nil {
		if r.isRight(k) {
			return
		}
		if r.goesOn(k) {
			r.end(k)
		} else {
			r.stop(name)
			k = nil
		}
	}
	if d == nil {
		return
	}
	policy, err := d.kind(r.profiles)
	if first := r.firsts[d.of]; policy != nil && first != d {
		err = &policykind.DefinedError{Kind: d.of, By: first.name}
	}
	if err != nil {
		r.problem(name, err)
		return
	}
	delete(r.problems, name)
	switch {
	case !d.served():
	case d.profiles():
		r.startProfiles(d)
	case d.gateway != nil:
		r.startGateway(d, k)
	case d.constraints != nil:
		r.startConstraints(d)
	case policy != nil && r.profiled:
		r.startPolicies(d, policy, k)
	}
}

// stop stops reading a kind and forgets its objects.
func (r *registry) stop(name string) {
	delete(r.problems, name)
	k := r.reading[name]
	if k == nil {
		return
	}
	r.end(k)
	switch {
	case k.gateway != nil:
		r.store.Replace(k.gateway.kind, nil)
		r.store.Listed(k.gateway.resource) // a kind that is gone has no objects
	case k.constraints != nil:
		r.forgetConstraints(k.constraints)
	case k.policy != nil:
		r.store.RemoveKind(k.policy.Ref())
		r.log.Info("a policy kind is gone", "definition", name)
	default:
		r.forgetProfiles()
	}
	r.notify()
}

// end stops reading a kind. No event comes from its feed then.
func (r *registry) end(k *kind) {
	delete(r.reading, k.name)
	k.close() // before the objects go, or a late event would bring some back
	k.cancel()
}

func (r *registry) problem(name string, err error) {
	if old := r.problems[name]; old == nil || old.Error() != err.Error() {
		r.log.Error(err, "a kind cannot be read", "definition", name)
	}
	r.problems[name] = err
}

func (r *registry) logOf(source string) logr.Logger { return r.log.WithValues("source", source) }

// notify tells that the kinds have changed. What constraints come to depends on
// them.
func (r *registry) notify() {
	hint(r.changed)
	if len(r.demands) > 0 {
		hint(r.judged)
	}
}

// hint sends a token; one that waits already is enough.
func hint(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
