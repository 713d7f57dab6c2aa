package server

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// leaderWork is the background work of the leader. A runnable in it is started once for
// each term, again in the same process if the replica leads again.
type leaderWork struct{ runnables []manager.Runnable }

// Add adds a runnable. Call it before Run.
func (w *leaderWork) Add(r manager.Runnable) { w.runnables = append(w.runnables, r) }

// Run runs all runnables until ctx ends, and returns when all have returned. If one of
// them fails before that, the others are stopped, and the error is returned. It can be
// called again after it returned.
func (w *leaderWork) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range w.runnables {
		group.Go(func() error {
			err := r.Start(ctx)
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return nil // it was stopped
			}
			return err
		})
	}
	return group.Wait()
}
