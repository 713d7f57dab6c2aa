package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// errStopped means that a resource is not read any more, or with another reflector.
var errStopped = errors.New("reflector stopped")

const (
	// catchUpConcurrency limits the requests of CatchUp at a time. Each page has
	// catchUpPageSize objects, and catchUpTimeout to arrive.
	catchUpConcurrency = 4
	catchUpPageSize    = 500
	catchUpTimeout     = 10 * time.Second
)

// watchedResource is a resource that a Watcher reads.
type watchedResource struct {
	*reflector
	resource schema.GroupVersionResource
	kind     api.PolicyKind
	// stage is when CatchUp lists it: what determines the resources that are read comes
	// first.
	stage    int
	isPolicy bool
}

// notWaiting is logged for each resource that CatchUp leaves out.
const notWaiting = "not waiting until the cache has the resource"

const (
	stageDefinitions = iota
	stageConfiguration
	stageObjects
)

// CatchUp takes a consistent list of every resource that is read, and returns once the
// cache has the state of each list, or a later one: all its objects in their versions or
// in newer ones, and no others but those that were created after the list. So nothing
// that was stored before the call is missing. It returns the error of ctx if that ends
// first; any number of calls is possible.
//
// The result has an Observation, without Marks, for each ref in pending whose kind was
// listed: of the object in the list, or of its deletion if the list does not have it.
//
// A list that fails is retried until ctx ends, except for the resources that do not take
// part in evaluations at the moment, and will not before a full list that is consistent:
//
//   - A policy kind that has not been listed and is forbidden, or cannot be listed (see
//     Problems): it is pending, so its writes are rejected.
//   - A policy kind whose watch is stale, or a pending one whose metadata can be listed,
//     once CatchUp has waited for it for StaleAfter: its writes are rejected, and a missing
//     permission or a failed conversion webhook of one kind must not block the writes of
//     all others. If the list of CatchUp fails for so long, it ends the watch: though
//     open, it may be late.
//   - Any other resource that is forbidden and has never been listed. At the start of the
//     server the store does not become ready without it. A kind of Gateway API that was
//     installed later is missing from the cache of each replica (see Problems).
//
// A resource that is not served (404) has no objects if its CustomResourceDefinition is
// gone; CatchUp waits until the watch of the definitions reports this.
func (w *Watcher) CatchUp(ctx context.Context, pending []api.Ref) ([]snapshot.Observation, error) {
	c := newCatchUp(w, pending)
	for {
		next := c.next()
		if len(next) == 0 {
			return c.observations(pending), nil
		}
		group, ctx := errgroup.WithContext(ctx)
		for _, r := range next {
			group.Go(func() error { return c.wait(ctx, r) })
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
}

// catchUp is one call of CatchUp.
type catchUp struct {
	watcher *Watcher
	pending map[api.Ref]bool
	limit   chan struct{} // has a token for each request
	done    map[*reflector]bool

	mu sync.Mutex
	// found are the observations of pending objects, by kind. It has each kind whose
	// list is in the cache.
	found map[api.PolicyKind]map[api.Ref]snapshot.Observation
}

func newCatchUp(w *Watcher, pending []api.Ref) *catchUp {
	c := &catchUp{
		watcher: w, pending: make(map[api.Ref]bool, len(pending)), limit: make(chan struct{}, catchUpConcurrency),
		done: make(map[*reflector]bool), found: make(map[api.PolicyKind]map[api.Ref]snapshot.Observation),
	}
	for _, ref := range pending {
		c.pending[ref] = true
	}
	return c
}

// next returns the resources of the first stage that has any left. Those that are read
// again in the meantime, with a new reflector, are listed again.
func (c *catchUp) next() []watchedResource {
	var out []watchedResource
	for _, r := range c.watcher.watchedResources() {
		if c.done[r.reflector] {
			continue
		}
		if len(out) > 0 && r.stage < out[0].stage {
			out = out[:0]
		}
		if len(out) == 0 || r.stage == out[0].stage {
			out = append(out, r)
		}
	}
	for _, r := range out {
		c.done[r.reflector] = true
	}
	return out
}

// observations returns what the lists have of the refs, in their order.
func (c *catchUp) observations(pending []api.Ref) []snapshot.Observation {
	var out []snapshot.Observation
	for _, ref := range pending {
		found, listed := c.found[ref.PolicyKind()]
		if !listed {
			continue
		}
		if o, ok := found[ref]; ok {
			out = append(out, o)
		} else {
			out = append(out, snapshot.Observation{Ref: ref, Deleted: true})
		}
	}
	return out
}

// wait lists a resource and waits until the cache has the list. It also returns nil when
// the resource is left out, and when it is not read any more, or with another reflector.
func (c *catchUp) wait(ctx context.Context, r watchedResource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.stopped:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	began := time.Now()
	list, err := c.list(ctx, r, began)
	if err == nil && list != nil {
		err = c.waitFor(ctx, r, list, began)
	}
	if err != nil && errors.Is(context.Cause(ctx), errStopped) {
		return nil
	}
	return err
}

// waitFor waits until the cache has a list, or the resource is left out.
func (c *catchUp) waitFor(ctx context.Context, r watchedResource, list *metadataList, began time.Time) error {
	patience := time.NewTimer(StaleAfter - time.Since(began) + 1)
	defer patience.Stop()
	for {
		changed := r.progress.next()
		switch {
		case r.progress.has(list.state):
			c.mu.Lock()
			defer c.mu.Unlock()
			c.found[r.kind] = list.pending
			return nil
		case time.Since(began) > StaleAfter && c.watcher.rejectsWrites(r):
			r.log.Info(notWaiting)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the cache has the list of %s: %w", r.source, ctx.Err())
		case <-changed:
		case <-patience.C:
		}
	}
}

// metadataList is a consistent list of a resource.
type metadataList struct {
	state
	// pending are the observations of objects with pending writes.
	pending map[api.Ref]snapshot.Observation
}

// list lists a resource, and retries until ctx ends. It returns nil if the resource is
// left out.
func (c *catchUp) list(ctx context.Context, r watchedResource, began time.Time) (*metadataList, error) {
	backoff := retryBackoff{sources: &c.watcher.sources, fast: delayFunc(fastBackoff), slow: delayFunc(slowBackoff)}
	for {
		list, err := c.listOnce(ctx, r)
		switch {
		case err == nil:
			return list, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("list %s: %w", r.source, ctx.Err())
		case c.leavesOut(r, err, time.Since(began)):
			r.log.Info(notWaiting, "cause", err.Error())
			return nil, nil
		}
		r.log.V(1).Info("cannot list resource; retrying", "cause", err.Error())
		backoff.wait(ctx, backoff.delay(err))
	}
}

// leavesOut reports whether CatchUp does not wait any more for a resource whose list has
// failed with err.
func (c *catchUp) leavesOut(r watchedResource, err error, waited time.Duration) bool {
	synced := r.health.get().Synced
	if !r.isPolicy {
		return apierrors.IsForbidden(err) && !synced
	}
	if waited <= StaleAfter {
		return c.watcher.registry.isUnreadable(r.reflector)
	}
	if synced {
		r.expire(err)
	}
	return c.watcher.rejectsWrites(r)
}

// rejectsWrites reports whether writes of a resource are rejected until it has been
// listed again. This is true only of policy kinds. After an interruption of all watches,
// it is true until the reflector of a kind has tried again.
func (w *Watcher) rejectsWrites(r watchedResource) bool {
	if !r.isPolicy {
		return false
	}
	result := w.staleness.Load()
	return result != nil && result.kinds[r.kind] != nil || w.registry.isUnreadable(r.reflector)
}

// isUnreadable reports whether a policy kind is pending because it cannot be listed.
func (r *registry) isUnreadable(f *reflector) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.watched {
		if k.reflector == f {
			return !k.listed && (k.forbidden != nil || k.unlistable != nil)
		}
	}
	return false
}

// listOnce lists the metadata of all objects of a resource, page by page in the version
// of the first page. If that expires, the error is Expired (410).
func (c *catchUp) listOnce(ctx context.Context, r watchedResource) (*metadataList, error) {
	list := &metadataList{pending: make(map[api.Ref]snapshot.Observation)}
	began, reached := time.Now(), r.progress.reached()
	for options := (metav1.ListOptions{Limit: catchUpPageSize}); ; {
		page, err := c.page(ctx, r.resource, options)
		if err != nil {
			return nil, err
		}
		if list.version, err = strconv.ParseUint(page.ResourceVersion, 10, 64); err != nil {
			return nil, fmt.Errorf("resourceVersion of the list of %s: %w", r.source, err)
		}
		if err := r.compareStorage(list.version, reached, began); err != nil {
			return nil, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			list.add(versionHash(cache.MetaObjectToName(item), item.ResourceVersion))
			ref := api.Ref{Group: r.kind.Group, Kind: r.kind.Kind, Namespace: item.Namespace, Name: item.Name}
			if c.pending[ref] {
				list.pending[ref] = snapshot.Observation{Ref: ref, UID: item.UID, Version: item.ResourceVersion}
			}
		}
		if options.Continue = page.Continue; page.Continue == "" {
			return list, nil
		}
	}
}

func (c *catchUp) page(ctx context.Context, r schema.GroupVersionResource, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	select {
	case c.limit <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.limit }()
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	return c.watcher.clients.metadata.Resource(r).List(ctx, o)
}

// watchedResources returns all resources that are read.
func (w *Watcher) watchedResources() []watchedResource {
	out := []watchedResource{{reflector: w.definitions, resource: definitionsResource, kind: policykind.KindDefinition}}
	for i, b := range coreKinds {
		out = append(out, watchedResource{
			reflector: w.core[i], resource: schema.GroupVersionResource{Version: b.versions[0], Resource: b.resource},
			kind: b.kind, stage: stageObjects,
		})
	}
	return append(out, w.registry.watchedResources()...)
}

func (r *registry) watchedResources() []watchedResource {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []watchedResource
	for _, k := range r.watched {
		stage := stageObjects
		if k.isProfiles() || k.constraints != nil {
			stage = stageConfiguration
		}
		out = append(out, watchedResource{k.reflector, k.resource, k.groupKind, stage, k.policy != nil})
	}
	return out
}

// wakeCatchUp makes calls of CatchUp check again which kinds are rejected.
func (r *registry) wakeCatchUp() {
	for _, f := range r.reflectors() {
		f.progress.wake()
	}
}
