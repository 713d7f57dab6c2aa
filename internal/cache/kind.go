package cache

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// initialListTimeout is how long a starting server waits for a policy kind that cannot be
// listed (markUnlistable): the API server may only be overloaded.
const initialListTimeout = 30 * time.Second

// startPolicies starts reading a policy kind. previous is how it was read before, nil if it
// was not.
func (r *registry) startPolicies(d *snapshot.Definition, policy *policykind.Kind, previous *watchedKind) {
	r.store.AddKind(policy)
	read := policyDecoder(policy)
	if previous != nil {
		read = coercingDecoder(policy)
	}
	into := &sink{
		store: r.store, kind: policy.Ref(), log: r.logger(d.Name),
		decode: read, target: policyTarget{objectTarget{r.store, policy.Ref(), r.exemptNamespace}},
	}
	f := newReflector(d.Name, r.clients.policiesListWatch(d.Resource), untyped(d), into)
	f.health.health.Kind = policy.Ref()
	k := r.addKind(d, f, previous)
	k.policy = policy
	r.log.Info("policy kind added", "definition", d.Name, "version", d.Resource.Version,
		"profile", policy.Source, "name", policy.Name, "class", policy.Class)
	into.listed = func() { r.policiesListed(k) }
	r.start(k.reflector)
	r.notifyKindsChanged()
}

// startFixed starts reading a kind of Gateway API or of constraints; previous is as in
// startPolicies.
func (r *registry) startFixed(d *snapshot.Definition, previous *watchedKind) {
	b := fixedKindOf(d)
	into := &sink{
		store: r.store, kind: b.kind, log: r.logger(b.resource),
		decode: ignoring(r.exemptNamespace, b.decode), target: objectTarget{store: r.store, kind: b.kind},
	}
	example := b.example
	if example == nil {
		example = untyped(d)
	}
	k := r.addKind(d, newReflector(b.resource, r.clients.listWatch(b, d.Resource.Version), example, into), previous)
	into.listed = func() { r.fixedListed(k) }
	r.start(k.reflector)
	r.notifyKindsChanged()
}

// startSelectable starts reading the labels of a kind; previous is as in startPolicies.
func (r *registry) startSelectable(d *snapshot.Definition, previous *watchedKind) {
	into := &sink{
		store: r.store, kind: d.Kind, log: r.logger(d.Name),
		decode: labelDecoder(d.Kind), target: objectTarget{store: r.store, kind: d.Kind},
	}
	f := newReflector(d.Name, r.clients.policiesListWatch(d.Resource), untyped(d), into)
	f.health.health.Kind = d.Kind // if it cannot be read, only its own writes wait
	k := r.addKind(d, f, previous)
	k.selectable = true
	into.listed = func() { r.policiesListed(k) }
	r.start(k.reflector)
	r.notifyKindsChanged()
}

func (r *registry) startProfiles(d *snapshot.Definition) {
	into := &sink{
		store: r.store, kind: policykind.KindProfile, log: r.logger(sourceProfiles),
		decode: decodeProfile, listed: func() {},
	}
	k := r.addKind(d, newReflector(sourceProfiles, r.clients.policiesListWatch(d.Resource), untyped(d), into), nil)
	into.target = profileTarget{r, k}
	// The target takes the lock of the registry, which is held when reflectors are
	// closed: profileTarget itself ignores late events.
	k.close = func() {}
	r.start(k.reflector)
}

func untyped(d *snapshot.Definition) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(d.Resource.GroupVersion().WithKind(d.Kind.Kind))
	return out
}

func (r *registry) addKind(d *snapshot.Definition, f *reflector, previous *watchedKind) *watchedKind {
	k := &watchedKind{Definition: d, reflector: f}
	if previous != nil {
		k.hasOldObjects = previous.listed || previous.hasOldObjects
		f.health.inherit(previous.health)
	}
	f.gvr = d.Resource
	f.onForbidden = func(err error) { r.recordForbidden(k, err) }
	r.watched[d.Name] = k
	return k
}

func (r *registry) fixedListed(k *watchedKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched[k.Name] == k {
		r.markListed(k)
		r.store.Listed(k.Resource.Resource)
	}
}

func (r *registry) policiesListed(k *watchedKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched[k.Name] != k {
		return // it was replaced in the meantime
	}
	wasForbidden := k.forbidden != nil
	r.markListed(k)
	r.checkPolicyKindsListed()
	if wasForbidden {
		r.notifyKindsChanged()
	}
}

func (r *registry) markListed(k *watchedKind) {
	k.listed, k.forbidden, k.unlistable = true, nil, nil
	delete(r.problems, k.Name)
}

// recordForbidden records that a list is forbidden.
func (r *registry) recordForbidden(k *watchedKind, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watched[k.Name] != k || k.forbidden != nil {
		return
	}
	k.forbidden = err
	r.setProblem(k.Name, fmt.Errorf("%w; grant get, list and watch on %s", err, k.Name))
	if k.policy != nil && k.isExcluded() {
		r.store.SetUnlisted(k.policy.Ref())
	}
	r.checkPolicyKindsListed()
	r.notifyKindsChanged()
	r.changes.notify()
}

// markUnlistable ends the wait for policy kinds that the API server cannot list, for
// example because a conversion webhook fails, so that a starting server can evaluate
// writes of all other kinds.
func (r *registry) markUnlistable(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.watched {
		if k.policy == nil && !k.selectable || k.listed || k.forbidden != nil || k.unlistable != nil {
			continue
		}
		if err := k.health.listFailure(now); err != nil {
			k.unlistable = err
			r.setProblem(k.Name, fmt.Errorf("%w; its writes are not evaluated until it can be listed", err))
			r.changes.notify()
		}
	}
	r.checkPolicyKindsListed()
}

// unlistableKinds returns the policy kinds that are not waited for any more, and why.
func (r *registry) unlistableKinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for name, k := range r.watched {
		if k.unlistable != nil {
			out = append(out, Problem{name, r.problems[name]}.String())
		}
	}
	slices.Sort(out)
	return out
}
