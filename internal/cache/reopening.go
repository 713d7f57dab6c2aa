package cache

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Await blocks while a watch that has just ended is being reopened, until ctx ends at
// the latest. After it the cache has what another replica admitted in the meantime. It
// does not wait for policy kinds that the API server cannot list, nor for sources that
// are already stale (see CheckFresh).
func (w *Watcher) Await(ctx context.Context) {
	for {
		changed := w.changes.changed()
		if !shouldWait(w.health(), time.Now()) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-w.stopped:
			return
		case <-changed: // at least at each check of the sources
		}
	}
}

// shouldWait reports whether reviews must wait.
func shouldWait(sources []SourceHealth, now time.Time) (waits bool) {
	for _, s := range sources {
		switch {
		case s.DisconnectedSince.IsZero(), apierrors.IsNotFound(s.Err):
		case s.Kind != api.PolicyKind{} && (s.stale(now) || apierrors.IsForbidden(s.Err)):
		case s.stale(now):
			return false
		default:
			waits = true
		}
	}
	return waits
}
