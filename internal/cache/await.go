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
	reopened := w.sources.waitChannel()
	if reopened == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-reopened:
	}
}

// updateWaiting evaluates shouldWait each time that a source changes or becomes stale,
// until ctx ends, and then releases all waiting reviews.
func (w *Watcher) updateWaiting(ctx context.Context) {
	defer w.sources.close()
	for {
		seen := w.sources.currentVersion()
		now := time.Now()
		waits, next := w.shouldWait(now)
		w.sources.setWaiting(seen, waits)
		select {
		case <-ctx.Done():
			return
		case <-w.sources.updated:
		case <-timerChannel(next):
		}
	}
}

// timerChannel is time.After; it returns nil, which blocks forever, for d <= 0.
func timerChannel(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// shouldWait reports whether reviews must wait at the time now, and after what time
// that may change without an event: 0 for never.
func (w *Watcher) shouldWait(now time.Time) (waits bool, next time.Duration) {
	for _, s := range w.Health() {
		if s.DisconnectedSince.IsZero() {
			continue
		}
		if left := StaleAfter - now.Sub(s.DisconnectedSince); left >= 0 && (next == 0 || left < next) {
			next = left + 1 // a source is stale after StaleAfter, not at it
		}
		switch {
		case apierrors.IsNotFound(s.Err), s.Kind != api.PolicyKind{} && (s.stale(now) || apierrors.IsForbidden(s.Err)):
		case s.stale(now):
			return false, next
		default:
			waits = true
		}
	}
	return waits, next
}
