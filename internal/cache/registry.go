package cache

import (
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// registry starts and stops the reflectors of kinds as their CustomResourceDefinitions
// and profiles are created, changed and deleted. It is the target of both: each event
// is recorded, and then reconcile makes the running reflectors match.
type registry struct {
	store           *snapshot.Store
	clients         *clients
	log             logr.Logger
	exemptNamespace string // the namespace whose policies are ignored
	// start runs a reflector in a goroutine until its cancel is called.
	start func(*reflector)
	// kindsChanged receives a token when the result of served has changed.
	kindsChanged chan struct{}
	// statusChanged receives one when the status of profiles or constraints may have
	// changed.
	statusChanged chan struct{}
	// changes is notified of what Await and CatchUp wait for.
	changes broadcast

	mu       sync.Mutex
	kinds    *snapshot.Kinds
	watched  map[string]*watchedKind // by the name of the definition
	problems map[string]error        // by the name of the definition
	// definitionsListed is true after the first list of definitions; profilesListed
	// after the first list of profiles, or if their kind is not installed. No policy
	// kind is read before.
	definitionsListed, profilesListed bool
	// unsynced are the policy kinds of the first list that have not been listed yet.
	unsynced map[string]bool
}

// watchedKind is a kind that is being read.
type watchedKind struct {
	*snapshot.Definition
	*reflector
	policy *policykind.Kind // nil for kinds of Gateway API, profiles and constraints
	// selectable is set for other kinds, of which the labels are read.
	selectable bool
	listed     bool
	// hasOldObjects is true if objects that an earlier reflector listed stay in the
	// view until this one has listed.
	hasOldObjects bool
	// forbidden is why it may not be listed. It may have been listed before.
	forbidden error
	// unlistable is why it has not been listed for so long that readiness does not
	// wait for it.
	unlistable error
}

func newRegistry(s *snapshot.Store, c *clients, o Options) *registry {
	r := &registry{
		store: s, clients: c, log: o.Log, exemptNamespace: o.Exempt, kinds: snapshot.NewKinds(),
		kindsChanged: make(chan struct{}, 1), statusChanged: make(chan struct{}, 1),
		watched: make(map[string]*watchedKind), problems: make(map[string]error), unsynced: make(map[string]bool),
	}
	s.Subscribe(r.objectsChanged)
	return r
}

func (r *registry) put(o snapshot.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := o.(*snapshot.Definition) //nolint:forcetypeassert // as decodeDefinition returns it
	previous := r.kinds.DefinitionNamed(d.Name)
	r.setKinds(r.kinds.With(snapshot.Put(d)))
	if previous != nil && (previous.Status != d.Status || !maps.Equal(previous.ScalePaths, d.ScalePaths)) {
		r.notifyKindsChanged()
	}
}

func (r *registry) remove(ref api.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setKinds(r.kinds.With(snapshot.Delete(ref)))
}

func (r *registry) replace(all []snapshot.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var changes []snapshot.Change
	for _, d := range r.kinds.Definitions() {
		changes = append(changes, snapshot.Delete(d.Ref()))
	}
	for _, d := range all {
		changes = append(changes, snapshot.Put(d))
	}
	first := !r.definitionsListed
	r.definitionsListed = true
	r.setKinds(r.kinds.With(changes...))
	r.notifyKindsChanged() // subresources may have changed
	if first {
		r.markMissingListed()
	}
}

// currentKinds returns the definitions and profiles of the cluster.
func (r *registry) currentKinds() *snapshot.Kinds {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kinds
}

// setKinds makes the view and the running reflectors match definitions and profiles.
func (r *registry) setKinds(k *snapshot.Kinds) {
	r.kinds = k
	r.store.SetKinds(k)
	r.reconcile()
}

// markMissingListed marks the sources as listed whose kinds the first list of
// definitions does not have.
func (r *registry) markMissingListed() {
	for i := range fixedKinds {
		if b := &fixedKinds[i]; r.watched[snapshot.DefinitionName(b.kind)] == nil {
			r.store.Listed(b.resource)
		}
	}
	r.store.Listed(sourceDefinitions)
}

// reconcile starts, restarts and stops reflectors so that exactly the defined kinds are
// read, as their definitions and profiles say.
func (r *registry) reconcile() {
	r.reconcileKind(profilesDefinition) // first: removing it removes all profiles
	first := r.checkProfilesListed()
	// Stop before starting: a kind may have moved from one definition to another.
	for _, name := range slices.Sorted(maps.Keys(r.watched)) {
		if k := r.watched[name]; !r.isUpToDate(k) && !r.keepsObjects(k) {
			r.removeKind(name)
		}
	}
	for _, d := range r.kinds.Definitions() {
		r.reconcileKind(d.Name)
	}
	maps.DeleteFunc(r.problems, func(name string, _ error) bool { return r.kinds.DefinitionNamed(name) == nil })
	if first {
		r.awaitPolicyKinds()
	}
	r.checkPolicyKindsListed()
}

// checkProfilesListed marks the profiles as listed once they are, or if their kind is
// not installed, and reports whether it did.
func (r *registry) checkProfilesListed() bool {
	k := r.watched[profilesDefinition]
	if r.profilesListed || !r.definitionsListed || k != nil && !k.listed {
		return false
	}
	r.profilesListed = true
	r.store.Listed(sourceProfiles)
	return true
}

// awaitPolicyKinds makes readiness wait for the policy kinds of the first list.
func (r *registry) awaitPolicyKinds() {
	for name, k := range r.watched {
		if k.policy != nil || k.selectable {
			r.unsynced[name] = true
		}
	}
	r.notifyKindsChanged() // even if there are no kinds
}

// checkPolicyKindsListed marks the policy kinds as listed if readiness waits for none.
// It does not wait for kinds that may not or cannot be listed: these are Problems and
// stay pending.
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

// isUpToDate reports whether a kind is read as its definition and profile say.
func (r *registry) isUpToDate(k *watchedKind) bool {
	d := r.activeDefinition(k.Name)
	if d == nil || d.Resource != k.Resource || d.Namespaced != k.Namespaced {
		return false
	}
	policy, err := r.kinds.Policy(d)
	return err == nil && policy == k.policy && r.kinds.Selectable(d.Kind) == k.selectable
}

// activeDefinition returns a definition, nil if another definition of its kind is
// active.
func (r *registry) activeDefinition(name string) *snapshot.Definition {
	if d := r.kinds.DefinitionNamed(name); d != nil && r.kinds.DefinitionOf(d.Kind) == d {
		return d
	}
	return nil
}

// keepsObjects reports whether the kind is still to be read, possibly with another
// configuration: then its objects stay in the view until they are relisted. The objects
// of a kind that is no longer served, or no longer a policy kind, are removed. Those of
// profiles are not kept: they have a single version.
func (r *registry) keepsObjects(k *watchedKind) bool {
	d := r.activeDefinition(k.Name)
	if d == nil || !d.Served() {
		return false
	}
	policy, err := r.kinds.Policy(d)
	return fixedKindOf(d) != nil || k.selectable && r.kinds.Selectable(d.Kind) ||
		err == nil && policy != nil && k.policy != nil && policy.Ref() == k.policy.Ref()
}

// reconcileKind starts or restarts the reflector of a kind as its definition and
// profile say.
func (r *registry) reconcileKind(name string) {
	k, d := r.watched[name], r.kinds.DefinitionNamed(name)
	if k != nil {
		if r.isUpToDate(k) {
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
	policy, err := r.kinds.Policy(d)
	if err != nil {
		r.setProblem(name, err)
		return
	}
	delete(r.problems, name)
	switch {
	case !d.Served():
	case name == profilesDefinition:
		r.startProfiles(d)
	case fixedKindOf(d) != nil:
		r.startFixed(d, k)
	case policy != nil && r.profilesListed:
		r.startPolicies(d, policy, k)
	case r.kinds.Selectable(d.Kind) && r.profilesListed:
		r.startSelectable(d, k)
	}
}

// removeKind stops reading a kind and removes its objects.
func (r *registry) removeKind(name string) {
	delete(r.problems, name)
	k := r.watched[name]
	if k == nil {
		return
	}
	r.stopReflector(k)
	switch {
	case fixedKindOf(k.Definition) != nil:
		r.store.Replace(k.Kind, nil)
		r.store.Listed(k.Resource.Resource) // a kind that is not installed has no objects
	case k.selectable:
		r.store.Replace(k.Kind, nil)
	case k.policy != nil:
		r.store.RemoveKind(k.policy.Ref())
		r.log.Info("policy kind removed", "definition", name)
	}
	r.notifyKindsChanged()
}

// stopReflector stops reading a kind. No event of its reflector arrives afterwards.
func (r *registry) stopReflector(k *watchedKind) {
	delete(r.watched, k.Name)
	k.close() // before objects are removed, or a late event would add some again
	k.cancel()
	r.changes.notify()
}

func (r *registry) setProblem(name string, err error) {
	if old := r.problems[name]; old == nil || old.Error() != err.Error() {
		r.log.Error(err, "cannot read kind", "definition", name)
	}
	r.problems[name] = err
}

func (r *registry) logger(source string) logr.Logger { return r.log.WithValues("source", source) }

// notifyKindsChanged signals that the kinds have changed. The status of constraints
// depends on them.
func (r *registry) notifyKindsChanged() {
	signal(r.kindsChanged)
	signal(r.statusChanged)
}

// signal sends a token unless one is pending already.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
