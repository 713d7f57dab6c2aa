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
	exemptNamespace  string // the namespace whose policies take no part
	// start runs a feed in a goroutine until its cancel is called.
	start func(*reflector)
	// changed gets a token when what served returns has changed.
	kindsChanged chan struct{}
	// judged gets one when what became of profiles or constraints may have.
	statusChanged chan struct{}

	mu       sync.Mutex
	definitions  map[string]*definition         // by name
	active   map[api.PolicyKind]*definition // of these, those that count
	profiles *policykind.Profiles
	clusterProfiles  map[string]*profile // the cluster's own, by name
	constraints  map[api.Ref]*constraintRecord // its constraints
	watched  map[string]*watchedKind    // by the name of the definition
	problems map[string]error    // likewise
	// surveyed tells that the definitions were listed, profiled that the
	// profiles were, or that there are none: no policy kind is read before.
	definitionsListed, profilesListed bool
	// waiting are the policy kinds of the first list that were not listed yet.
	unsynced map[string]bool
}

// kind is a kind that is being read.
type watchedKind struct {
	*definition
	*reflector
	policy *policykind.Kind // nil for those of the hierarchy, and our own
	listed bool
	// kept tells that what an earlier feed listed stays in the view until this one
	// has a list.
	hasOldObjects bool
	// forbidden is why it may not be listed. It may have been listed before.
	forbidden error
	// broken is why it has not been listed for so long that nobody waits for it.
	unlistable error
}

func newRegistry(s *snapshot.Store, c *clients, known *policykind.Profiles, o Options) *registry {
	r := &registry{
		store: s, clients: c, log: o.Log, exemptNamespace: o.Exempt, profiles: known,
		kindsChanged: make(chan struct{}, 1), statusChanged: make(chan struct{}, 1),
		definitions: make(map[string]*definition), clusterProfiles: make(map[string]*profile),
		constraints: make(map[api.Ref]*constraintRecord),
		watched: make(map[string]*watchedKind), problems: make(map[string]error), unsynced: make(map[string]bool),
	}
	s.Subscribe(r.targetsChanged)
	return r
}

func (r *registry) put(d *definition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.definitions[d.name]
	r.definitions[d.name] = d
	r.reconcile()
	if was != nil && (was.hasStatus != d.hasStatus || !maps.Equal(was.scalePaths, d.scalePaths)) {
		r.notifyKindsChanged()
	}
}

func (r *registry) remove(name cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.definitions, name.Name)
	r.reconcile()
}

func (r *registry) replace(all []*definition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.definitions = make(map[string]*definition, len(all))
	for _, d := range all {
		r.definitions[d.name] = d
	}
	first := !r.definitionsListed
	r.definitionsListed = true
	r.reconcile()
	r.notifyKindsChanged() // the subresources of kinds that stay may be others
	if first {
		r.markMissingListed()
	}
}

// survey ends the wait for what the first list of definitions does not have.
func (r *registry) markMissingListed() {
	for i := range gatewayKinds {
		if b := &gatewayKinds[i]; r.watched[b.definition()] == nil {
			r.store.Listed(b.resource)
		}
	}
	for i := range constraintKinds {
		if k := &constraintKinds[i]; r.watched[k.definition()] == nil {
			r.store.Listed(k.resource)
		}
	}
	r.store.Listed(sourceDefinitions)
}

// reconcile reads what is to be read, as it is to be read, and nothing else.
func (r *registry) reconcile() {
	r.active = activeDefinitions(maps.Values(r.definitions))
	r.reconcileKind(profilesDefinition) // first: when it goes, so do all profiles
	first := r.checkProfilesListed()
	// What is not to be read is stopped before anything is begun: a kind may
	// have moved from one definition to another.
	for _, name := range slices.Sorted(maps.Keys(r.watched)) {
		if k := r.watched[name]; !r.isCurrent(k) && !r.keepsObjects(k) {
			r.removeKind(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.definitions)) {
		r.reconcileKind(name)
	}
	maps.DeleteFunc(r.problems, func(name string, _ error) bool { return r.definitions[name] == nil })
	if first {
		r.awaitPolicyKinds()
	}
	r.checkPolicyKindsListed()
}

// settleProfiles ends the wait for the profiles once they are listed, or if
// there can be none, and reports whether it did.
func (r *registry) checkProfilesListed() bool {
	k := r.watched[profilesDefinition]
	if r.profilesListed || !r.definitionsListed || k != nil && !k.listed {
		return false
	}
	r.profilesListed = true
	r.store.Listed(sourceProfiles)
	return true
}

// await begins the wait for the policy kinds of the first list.
func (r *registry) awaitPolicyKinds() {
	for name, k := range r.watched {
		if k.policy != nil {
			r.unsynced[name] = true
		}
	}
	r.notifyKindsChanged() // of no kinds, too
}

// settle tells the store when no policy kind is waited for. A kind that may
// not be listed, or that the API server does not give out, is not: it is a
// Problem, and stays pending.
func (r *registry) checkPolicyKindsListed() {
	if !r.profilesListed {
		return
	}
	for name := range r.unsynced {
		if k := r.watched[name]; k == nil || k.listed || k.forbidden != nil || k.unlistable != nil {
			delete(r.unsynced, name)
		}
	}
	if len(r.unsynced) == 0 {
		r.store.Listed(sourcePolicies)
	}
}

// isRight reports whether a kind is read as it is to be.
func (r *registry) isCurrent(k *watchedKind) bool {
	d := r.activeDefinition(k.name)
	if d == nil || d.resource != k.resource || d.namespaced != k.namespaced {
		return false
	}
	policy, err := d.policyKind(r.profiles)
	return err == nil && sameKind(policy, k.policy)
}

// counting returns a definition, nil if another one of its kind counts.
func (r *registry) activeDefinition(name string) *definition {
	if d := r.definitions[name]; d != nil && r.active[d.groupKind] == d {
		return d
	}
	return nil
}

// goesOn reports whether the kind that is read is still to be read, in whatever way:
// its objects stay in the view until they are listed again. Those of a kind that
// is not served any more, or is no policy kind, are dropped.
func (r *registry) keepsObjects(k *watchedKind) bool {
	d := r.activeDefinition(k.name)
	switch {
	case d == nil || !d.served():
		return false
	case k.gateway != nil:
		return true
	case k.policy == nil:
		return false // profiles and constraints have one version
	}
	policy, err := d.policyKind(r.profiles)
	return err == nil && policy != nil && policy.Ref() == k.policy.Ref()
}

func sameKind(a, b *policykind.Kind) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.Source == b.Source && a.Name == b.Name && a.Schema().Same(b.Schema()) && reflect.DeepEqual(a.PolicyProfileSpec, b.PolicyProfileSpec)
}

// read reads a kind as its definition and its profile say from now on.
func (r *registry) reconcileKind(name string) {
	k, d := r.watched[name], r.definitions[name]
	if k != nil {
		if r.isCurrent(k) {
			return
		}
		if r.keepsObjects(k) {
			r.stopReflector(k)
		} else {
			r.removeKind(name)
			k = nil
		}
	}
	if d == nil {
		return
	}
	policy, err := d.policyKind(r.profiles)
	if first := r.active[d.groupKind]; policy != nil && first != d {
		err = &policykind.DefinedError{Kind: d.groupKind, By: first.name}
	}
	if err != nil {
		r.setProblem(name, err)
		return
	}
	delete(r.problems, name)
	switch {
	case !d.served():
	case d.isProfiles():
		r.startProfiles(d)
	case d.gateway != nil:
		r.startGateway(d, k)
	case d.constraints != nil:
		r.startConstraints(d)
	case policy != nil && r.profilesListed:
		r.startPolicies(d, policy, k)
	}
}

// stop stops reading a kind and forgets its objects.
func (r *registry) removeKind(name string) {
	delete(r.problems, name)
	k := r.watched[name]
	if k == nil {
		return
	}
	r.stopReflector(k)
	switch {
	case k.gateway != nil:
		r.store.Replace(k.gateway.kind, nil)
		r.store.Listed(k.gateway.resource) // a kind that is gone has no objects
	case k.constraints != nil:
		r.removeConstraints(k.constraints)
	case k.policy != nil:
		r.store.RemoveKind(k.policy.Ref())
		r.log.Info("policy kind removed", "definition", name)
	default:
		r.removeProfiles()
	}
	r.notifyKindsChanged()
}

// end stops reading a kind. No event comes from its feed then.
func (r *registry) stopReflector(k *watchedKind) {
	delete(r.watched, k.name)
	k.close() // before the objects go, or a late event would bring some back
	k.cancel()
}

func (r *registry) setProblem(name string, err error) {
	if old := r.problems[name]; old == nil || old.Error() != err.Error() {
		r.log.Error(err, "cannot read kind", "definition", name)
	}
	r.problems[name] = err
}

func (r *registry) logger(source string) logr.Logger { return r.log.WithValues("source", source) }

// notify tells that the kinds have changed. What constraints come to depends on
// them.
func (r *registry) notifyKindsChanged() {
	signal(r.kindsChanged)
	if len(r.constraints) > 0 {
		signal(r.statusChanged)
	}
}

// hint sends a token; one that waits already is enough.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
