package cache

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Await waits while a watch that has just ended is being opened again, until the
// context ends at the latest: what another replica let through meanwhile is
// known then. It does not wait for a policy kind that the API server does not give
// out, nor for what is too old to judge by already (see Current).
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

// attend decides for all reviews whether they wait, each time that a source
// changes or becomes stale, until the context ends. Then none waits.
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

// after is time.After; nothing comes for zero.
func timerChannel(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// reopening reports whether a review waits, and in what time that may change
// without any event: 0 for never.
func (w *Watcher) shouldWait(now time.Time) (waits bool, next time.Duration) {
	for _, s := range w.Health() {
		if s.DisconnectedSince.IsZero() {
			continue
		}
		if left := StaleAfter - now.Sub(s.DisconnectedSince); left >= 0 && (next == 0 || left < next) {
			next = left + 1 // it is stale after that, not at it
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
