package guard

import (
	"context"
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// ReadLiveFunc reads an object that the cache does not have yet from the API server. It
// returns nil if the object does not exist.
type ReadLiveFunc func(ctx context.Context, ref api.Ref) (snapshot.Object, error)

// readLive reads an object from the API server.
func (ev *write) readLive(ctx context.Context, ref api.Ref) (o snapshot.Object, err error) {
	err = ev.budget.Wait(func() error {
		o, err = ev.guard.ReadLive(ctx, ref)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return o, nil
}

// liveReader reads objects that a view lacks from the API server, each once: they may have been
// created a moment ago.
type liveReader struct {
	ev    *write
	view  *snapshot.View
	asked []api.Ref
}

// add adds an object to the view, if it exists.
func (r *liveReader) add(ctx context.Context, ref api.Ref) error {
	if slices.Contains(r.asked, ref) || len(r.asked) == maxLiveReads {
		return nil
	}
	r.asked = append(r.asked, ref)
	o, err := r.ev.readLive(ctx, ref)
	if err == nil && o != nil {
		r.view = r.view.With(snapshot.Put(o))
	}
	return err
}

// addMissing adds an object that the view lacks.
func (r *liveReader) addMissing(ctx context.Context, ref api.Ref) error {
	if r.view.Get(ref) != nil {
		return nil
	}
	return r.add(ctx, ref)
}

// addParents adds parents of a route or listener set.
func (r *liveReader) addParents(ctx context.Context, parents []gateway.Parent) error {
	for _, p := range parents {
		if err := r.addMissing(ctx, p.Ref()); err != nil {
			return err
		}
	}
	return nil
}
