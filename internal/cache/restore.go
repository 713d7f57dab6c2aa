package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An etcd that was restored from a snapshot has a lower revision than watches have reached
// before. The API server accepts a watch that continues there, and sends nothing until
// storage has reached that revision again: what is missing from the snapshot, and what is
// written meanwhile, never arrives. A consistent list shows the revision: it is never lower
// than one that was read before the list was requested.

const (
	// storageCheckInterval is the time between two comparisons of what the sources have
	// reached with storage.
	storageCheckInterval = 30 * time.Second
	// compareConcurrency limits the comparisons at a time, each of which has
	// compareTimeout.
	compareConcurrency = 4
	compareTimeout     = 10 * time.Second
	// restoredListTimeout is how long all writes wait for a policy kind that cannot be
	// listed after a restore. From then on only its own writes do.
	restoredListTimeout = 30 * time.Second
)

// RestoredError is why no write is evaluated after storage was restored to an earlier
// state, until every resource has been listed again.
type RestoredError struct {
	// Source is the resource whose list has the resourceVersion Stored, after Reached
	// was read.
	Source          string
	Stored, Reached uint64
}

func (e *RestoredError) Error() string {
	return fmt.Sprintf("storage was restored to an earlier state: resourceVersion of %s is %d, was %d; relisting", e.Source, e.Stored, e.Reached)
}

func isRestored(err error) bool {
	_, restored := errors.AsType[*RestoredError](err)
	return restored
}

// restore is that a source has found out by a list that storage was restored.
type restore struct {
	requested time.Time // when the list was requested
	err       *RestoredError
}

// checkStorage returns a RestoredError, and reports that storage was restored, if it is
// behind a resourceVersion from which a watch is to continue.
func (f *reflector) checkStorage(ctx context.Context, version string) error {
	reached, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return nil //nolint:nilerr // it is not comparable
	}
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	began := time.Now()
	list, err := f.lw.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("compare %s with storage: %w", f.source, err)
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("compare %s with storage: %w", f.source, err)
	}
	stored, err := strconv.ParseUint(m.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil //nolint:nilerr // it is not comparable
	}
	return f.compareStorage(stored, reached, began)
}

// compareStorage returns a RestoredError, and reports that storage was restored, if the
// version of a consistent list is lower than one that was read before the list was
// requested, at a time.
func (f *reflector) compareStorage(stored, reached uint64, requested time.Time) error {
	if stored >= reached {
		return nil
	}
	err := &RestoredError{f.source, stored, reached}
	f.health.onRestore(restore{requested, err})
	return err
}

// checkStorage compares all open watches with storage. Watches that are being opened do
// so themselves.
func (w *Watcher) checkStorage(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(compareConcurrency)
	for _, f := range w.reflectors() {
		if h := f.health.get(); !h.Synced || !h.DisconnectedSince.IsZero() {
			continue
		}
		group.Go(func() error {
			if err := f.checkStorage(ctx, strconv.FormatUint(f.health.reachedVersion(), 10)); err != nil {
				f.log.V(1).Info("cannot compare with storage", "cause", err.Error())
			}
			return nil
		})
	}
	_ = group.Wait()
}

// noteRestore has supervise relist everything. If it is about to, nothing else is needed.
func (w *Watcher) noteRestore(r restore) {
	select {
	case w.restored <- r:
	default:
	}
}

// relistAll makes the whole cache stale until every resource has been listed again. Many
// sources find out at once: those whose list was requested before that are late.
func (w *Watcher) relistAll(r restore) {
	if !r.requested.After(w.relistedAt) {
		return
	}
	w.log.Error(r.err, "storage was restored to an earlier state; relisting everything")
	w.restores.Add(1)
	// First: no review may be evaluated between the changes of the sources.
	w.staleness.Store(&staleness{checkedAt: time.Now(), err: r.err})
	w.store.ResetVersion()
	for _, f := range w.reflectors() {
		f.expire(r.err)
	}
	w.relistedAt = time.Now()
}

// Restores returns how often storage was found to be restored to an earlier state.
func (w *Watcher) Restores() uint64 { return w.restores.Load() }
