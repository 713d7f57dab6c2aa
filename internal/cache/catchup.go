package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/snapshot"
)

const (
	// metadataPageSize is the number of objects in each page of a list of metadata, and
	// metadataTimeout the time for it to arrive.
	metadataPageSize = 500
	metadataTimeout  = 10 * time.Second
	// eventTimeout is how long CatchUp waits by default for the events that a source lacks.
	// Usually they arrive within milliseconds.
	eventTimeout = time.Second
)

// errLate means that a source does not receive events in time.
var errLate = errors.New("events are late")

// CatchUp returns once the cache has the state of a consistent list of every resource that
// is read, or a later one. Each list is requested after the call: so nothing that was stored
// before the call is missing. It returns the error of ctx if that ends first; any number
// of calls is possible.
//
// The lists are of metadata, which is much faster than all objects. A resource is listed
// again in full if that fails, or if its watch does not deliver what it lacks.
//
// The result has an Observation, without Marks, for each ref in pending whose kind was
// listed: of the object in the list, or of its deletion. After a full list, it only has
// deletions: the store has reported the others.
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
// gone: it is not read any more once the definitions show this.
func (w *Watcher) CatchUp(ctx context.Context, pending []api.Ref) ([]snapshot.Observation, error) {
	began := time.Now()
	found := w.verify(ctx)
	for {
		changed := w.changes.changed()
		c := w.caughtUp(began)
		if c.late == nil {
			for _, f := range c.leftOut {
				f.log.Info("not waiting until the cache has the resource", "cause", fmt.Sprint(f.health.get().Err))
			}
			return w.observations(pending, found, c.listed), nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait until %s are listed again: %w", c.late.source, ctx.Err())
		case <-changed: // at least at each check of the sources
		}
	}
}

// metadataList is a consistent list of the metadata of a resource.
type metadataList struct {
	requested time.Time
	// version is that of the list, and newest that of its newest object.
	version, newest uint64
	objects         map[cache.ObjectName]snapshot.Observation
}

// verify compares all sources with lists of metadata, and lists those again that do not
// have them. It returns the lists of the others, by kind.
func (w *Watcher) verify(ctx context.Context) map[api.PolicyKind]*metadataList {
	var mu sync.Mutex
	out := make(map[api.PolicyKind]*metadataList)
	var group sync.WaitGroup
	for _, f := range w.reflectors() {
		group.Go(func() {
			list, err := f.verify(ctx, w.clients.metadata.Resource(f.gvr), w.eventTimeout)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				out[f.kind] = list
			case ctx.Err() == nil:
				f.log.V(1).Info("listing the resource again", "cause", err.Error())
				f.relist()
			}
		})
	}
	group.Wait()
	return out
}

// verify lists the metadata of a resource, and waits until the source has the list, as long
// as timeout says.
func (f *reflector) verify(ctx context.Context, from metadata.Getter, timeout time.Duration) (*metadataList, error) {
	list, err := f.listMetadata(ctx, from)
	if err != nil {
		return nil, err
	}
	for late := time.Now().Add(timeout); !f.health.verify(list); background.Sleep(ctx, eventTimeout/50) {
		if ctx.Err() != nil || time.Now().After(late) {
			return nil, errLate
		}
	}
	return list, nil
}

// listMetadata lists all objects page by page, in the version of the first page. If that
// expires, the error is Expired (410).
func (f *reflector) listMetadata(ctx context.Context, from metadata.Getter) (*metadataList, error) {
	list := &metadataList{requested: time.Now(), objects: make(map[cache.ObjectName]snapshot.Observation)}
	reached := f.health.reachedVersion()
	for o := (metav1.ListOptions{Limit: metadataPageSize}); ; {
		page, err := listPage(ctx, from, o)
		if err != nil {
			return nil, err
		}
		if list.version, err = strconv.ParseUint(page.ResourceVersion, 10, 64); err != nil {
			return nil, fmt.Errorf("resourceVersion of the list of %s: %w", f.source, err)
		}
		for i := range page.Items {
			item := &page.Items[i]
			version, err := strconv.ParseUint(item.ResourceVersion, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("resourceVersion in the list of %s: %w", f.source, err)
			}
			list.newest = max(list.newest, version)
			name := cache.MetaObjectToName(item)
			list.objects[name] = snapshot.Observation{Ref: refOf(f.kind, name), UID: item.UID, Version: item.ResourceVersion}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return list, f.compareStorage(list.version, reached, list.requested)
		}
	}
}

func listPage(ctx context.Context, from metadata.Getter, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	return from.List(ctx, o)
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
	check := func(f *reflector, leftOut bool) {
		switch {
		case f.health.listedSince(began):
			c.listed[f.kind] = true
		case leftOut:
			c.leftOut = append(c.leftOut, f)
		default:
			c.late = f
		}
	}
	for _, f := range append([]*reflector{w.definitions}, w.core...) {
		check(f, f.health.isForbidden(began))
	}
	for _, k := range r.watched {
		check(k.reflector, w.leavesOut(k, began))
	}
	return c
}

// leavesOut reports whether CatchUp, which began at a time, does not wait for a kind.
func (w *Watcher) leavesOut(k *watchedKind, began time.Time) bool {
	if k.policy == nil && !k.selectable {
		return k.health.isForbidden(began)
	}
	if k.isUnreadable() && k.health.failedSince(began) {
		return true
	}
	result := w.staleness.Load()
	rejected := k.isUnreadable() || result != nil && result.kinds[k.Kind] != nil
	return rejected && time.Since(began) > StaleAfter
}

// isUnreadable reports whether a policy kind is pending because it cannot be listed.
func (k *watchedKind) isUnreadable() bool {
	return !k.listed && (k.forbidden != nil || k.unlistable != nil)
}

// observations returns what CatchUp has of refs: that the view lacks them, or what the
// lists of metadata have.
func (w *Watcher) observations(refs []api.Ref, found map[api.PolicyKind]*metadataList, listed map[api.PolicyKind]bool) []snapshot.Observation {
	v, _ := w.store.View()
	var out []snapshot.Observation
	for _, ref := range refs {
		if !listed[ref.PolicyKind()] {
			continue
		}
		if list := found[ref.PolicyKind()]; list != nil {
			if o, ok := list.objects[cache.NewObjectName(ref.Namespace, ref.Name)]; ok {
				out = append(out, o)
				continue
			}
		}
		if v.Get(ref) == nil {
			out = append(out, snapshot.Observation{Ref: ref, Deleted: true})
		}
	}
	return out
}
