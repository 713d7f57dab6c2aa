package cache

import (
	"context"
	"fmt"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// CatchUp lists every resource that is read again, and returns once the cache has the
// lists. Each is consistent, and requested after the call: so nothing that was stored
// before the call is missing. It returns the error of ctx if that ends first; any number
// of calls is possible.
//
// The result has an Observation of its deletion for each ref in pending that is in no
// list, if its kind was listed. The store has reported all others.
//
// A list that fails is retried until ctx ends, except for the resources that do not take
// part in evaluations at the moment, and will not before a full list:
//
//   - A policy kind that has not been listed and is forbidden, or cannot be listed (see
//     Problems): it is pending, so its writes are rejected.
//   - A policy kind that is stale once CatchUp has waited for it for StaleAfter: its
//     writes are rejected, and a missing permission or a failed conversion webhook of one
//     kind must not block the writes of all others.
//   - Any other resource that is forbidden and has never been listed. At the start of the
//     server the store does not become ready without it. A kind of Gateway API that was
//     installed later is missing from the cache of each replica (see Problems).
//
// A resource that is not served (404) has no objects if its CustomResourceDefinition is
// gone: it is not read any more once the list of the definitions shows this.
func (w *Watcher) CatchUp(ctx context.Context, pending []api.Ref) ([]snapshot.Observation, error) {
	began := time.Now()
	for _, f := range w.reflectors() {
		f.relist()
	}
	for {
		changed := w.registry.changes.changed()
		c := w.caughtUp(began)
		if c.late == nil {
			for _, f := range c.leftOut {
				f.log.Info("not waiting until the cache has the resource", "cause", fmt.Sprint(f.health.get().Err))
			}
			return w.deleted(pending, c.listed), nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait until %s are listed again: %w", c.late.source, ctx.Err())
		case <-changed: // at least at each check of the sources
		}
	}
}

// caughtUp is what CatchUp has so far.
type caughtUp struct {
	// listed are the kinds that have been listed since it began.
	listed map[api.PolicyKind]bool
	// leftOut are those that it does not wait for, and late is one that it waits for.
	leftOut []*reflector
	late    *reflector
}

// caughtUp returns what a call of CatchUp has that began at a time.
//
// It holds the lock of the registry: what a list of definitions or profiles adds to the
// resources that are read is added before the list is complete.
func (w *Watcher) caughtUp(began time.Time) caughtUp {
	r := w.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	c := caughtUp{listed: make(map[api.PolicyKind]bool)}
	check := func(kind api.PolicyKind, f *reflector, leftOut bool) {
		switch {
		case f.health.listedSince(began):
			c.listed[kind] = true
		case leftOut:
			c.leftOut = append(c.leftOut, f)
		default:
			c.late = f
		}
	}
	check(policykind.KindDefinition, w.definitions, w.definitions.health.isForbidden(began))
	for i, f := range w.core {
		check(coreKinds[i].kind, f, f.health.isForbidden(began))
	}
	for _, k := range r.watched {
		check(k.groupKind, k.reflector, w.leavesOut(k, began))
	}
	return c
}

// leavesOut reports whether CatchUp, which began at a time, does not wait for a kind.
func (w *Watcher) leavesOut(k *watchedKind, began time.Time) bool {
	if k.policy == nil {
		return k.health.isForbidden(began)
	}
	if k.isUnreadable() && k.health.failedSince(began) {
		return true
	}
	result := w.staleness.Load()
	rejected := k.isUnreadable() || result != nil && result.kinds[k.groupKind] != nil
	return rejected && time.Since(began) > StaleAfter
}

// isUnreadable reports whether a policy kind is pending because it cannot be listed.
func (k *watchedKind) isUnreadable() bool {
	return !k.listed && (k.forbidden != nil || k.unlistable != nil)
}

// deleted returns observations of the refs of listed kinds that the view lacks.
func (w *Watcher) deleted(refs []api.Ref, listed map[api.PolicyKind]bool) []snapshot.Observation {
	v, _ := w.registry.store.View()
	var out []snapshot.Observation
	for _, ref := range refs {
		if listed[ref.PolicyKind()] && v.Get(ref) == nil {
			out = append(out, snapshot.Observation{Ref: ref, Deleted: true})
		}
	}
	return out
}
