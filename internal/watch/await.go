package watch

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// glance is the time between two looks at what is waited for.
const glance = 10 * time.Millisecond

// Await waits while a watch that has just ended is being opened again, until the
// context ends at the latest: what another replica let through meanwhile is
// known then. It does not wait for a policy kind that the API server does not give
// out, nor for what is too old to judge by already (see Current).
func (w *Watcher) Await(ctx context.Context) {
	if w.peers.dark.Load() == 0 {
		return
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for w.reopening(time.Now()) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Watcher) reopening(now time.Time) bool {
	waits := false
	for _, s := range w.Health() {
		switch {
		case s.Blind.IsZero(), apierrors.IsNotFound(s.Err), s.Kind != api.PolicyKind{} && (s.stale(now) || apierrors.IsForbidden(s.Err)):
		case s.stale(now):
			return false
		default:
			waits = true
		}
	}
	return waits
}
