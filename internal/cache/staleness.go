package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

const (
	// StaleAfter is how long a resource may be without a watch before writes are no
	// longer evaluated with the cached state. It is longer than an API server takes to
	// restart and a watch takes to reconnect, so that neither rejects writes. With
	// several API servers, writes that arrive from another one are evaluated with
	// state that may be this old, plus the time to detect a dead connection.
	StaleAfter = 10 * time.Second
	// silenceTimeout is how long an open watch may receive nothing. Bookmarks arrive
	// about once a minute: two of them are missing.
	silenceTimeout = 3 * time.Minute
	// checkInterval is the time between two checks of the sources.
	checkInterval = 500 * time.Millisecond
)

// errSuspended means that nothing was read for a while, for example because the process
// was stopped.
var errSuspended = errors.New("process was suspended or its node is overloaded; resyncing")

// staleness is the result of a check of all sources.
type staleness struct {
	// checkedAt is the time of the check.
	checkedAt time.Time
	// err is why no write can be evaluated, nil if the cache is current except for
	// kinds.
	err error
	// kinds are the policy kinds whose writes cannot be evaluated, and why.
	kinds map[api.PolicyKind]error
}

// stale reports whether the source is too old to evaluate writes with.
func (h SourceHealth) stale(now time.Time) bool {
	return !h.DisconnectedSince.IsZero() && now.Sub(h.DisconnectedSince) > StaleAfter
}

// blocksOwnWrites reports whether the stale source blocks only writes of its kind.
func (h SourceHealth) blocksOwnWrites(now time.Time) bool {
	return h.Kind != api.PolicyKind{} && (h.RestoredAt.IsZero() || now.Sub(h.RestoredAt) > restoredListTimeout)
}

func (h SourceHealth) staleError(now time.Time) error {
	err := fmt.Errorf("%s: watch disconnected for %s", h.Source, now.Sub(h.DisconnectedSince).Round(time.Second))
	if h.Err != nil {
		err = fmt.Errorf("%w: %w", err, h.Err)
	}
	if apierrors.IsForbidden(h.Err) {
		err = fmt.Errorf("%w; grant get, list and watch on %s", err, h.Source)
	}
	return err
}

// evaluateStaleness computes the staleness from sources, which are sorted.
//
// A stale policy kind blocks only its own writes: a missing permission or a failed
// conversion webhook of one kind must not block writes to all gateways. If a connection
// is dead, other resources on the same connection are stale too, and these block all
// writes. After a restore of storage, its policies as they were before must not be used:
// all writes wait until it is listed again, as at the start of the server.
func evaluateStaleness(sources []SourceHealth, now time.Time) *staleness {
	result := &staleness{checkedAt: now, kinds: make(map[api.PolicyKind]error)}
	others := 0
	for _, s := range sources {
		switch {
		case !s.stale(now):
		case s.blocksOwnWrites(now):
			result.kinds[s.Kind] = s.staleError(now)
		case result.err == nil:
			result.err = s.staleError(now)
		default:
			others++
		}
	}
	if others > 0 {
		result.err = fmt.Errorf("%w (and %d more resources)", result.err, others)
	}
	return result
}

// StaleError returns why no write may be evaluated with the cached state: it is stale. It is
// nil before the first check; until then the store is not ready.
func (w *Watcher) StaleError() error {
	result := w.staleness.Load()
	if result == nil {
		return nil
	}
	// After a suspension the last result is not valid.
	if idle := time.Since(result.checkedAt); idle > StaleAfter {
		return fmt.Errorf("watches not checked for %s: %w", idle.Round(time.Second), errSuspended)
	}
	return result.err
}

// CheckFresh returns why writes of a kind may not be evaluated with the cached state, nil
// if they may: StaleError, or the error of a policy kind that cannot be read.
func (w *Watcher) CheckFresh(kind api.PolicyKind) error {
	if err := w.StaleError(); err != nil {
		return err
	}
	if result := w.staleness.Load(); result != nil {
		return result.kinds[kind]
	}
	return nil
}

// UnreadableKindsError returns the policy kinds that cannot be read and whose writes are therefore
// not evaluated, nil if there are none.
func (w *Watcher) UnreadableKindsError() error {
	result := w.staleness.Load()
	if result == nil {
		return nil
	}
	out := w.unlistableKinds()
	for _, s := range w.Health() { // in the order of Health
		if err := result.kinds[s.Kind]; err != nil {
			out = append(out, err.Error())
		}
	}
	if len(out) == 0 {
		return nil
	}
	return errors.New(strings.Join(out, "; ")) //nolint:err113 // the text is shown by /readyz only
}

// supervise checks the sources at intervals until ctx ends.
func (w *Watcher) supervise(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	var comparing sync.WaitGroup
	defer comparing.Wait()
	ready, compared := false, time.Now()
	for {
		w.checkSources(time.Now())
		if time.Since(compared) >= storageCheckInterval {
			compared = time.Now()
			comparing.Go(func() { w.checkStorage(ctx) })
		}
		if _, now := w.store.View(); now && !ready {
			ready = true
			signal(w.statusChanged) // only now is it known which targets do not exist
		}
		select {
		case <-ctx.Done():
			return
		case r := <-w.restored:
			w.relistAll(r)
		case <-tick.C:
		}
	}
}

// checkSources restarts dead watches and updates the staleness.
func (w *Watcher) checkSources(now time.Time) {
	last := w.staleness.Load()
	for _, f := range w.reflectors() {
		switch {
		case last != nil && now.Sub(last.checkedAt) > StaleAfter:
			f.expire(errSuspended)
		case f.health.isSilent():
			f.log.Info("restarting watch", "cause", "no event or bookmark received")
			f.relist()
		}
	}
	if h := w.definitions.health.get(); h.Synced && h.DisconnectedSince.IsZero() {
		w.markUnlistable(now) // the API server responds, so the kinds themselves fail
	}
	result := evaluateStaleness(w.Health(), now)
	w.staleness.Store(result)
	w.changes.notify()
	switch {
	case last == nil || (last.err == nil) == (result.err == nil):
	case result.err == nil:
		w.log.Info("cache is up to date again")
	default:
		w.log.Error(result.err, "cache is stale")
	}
}

// reflectors returns all reflectors.
func (w *Watcher) reflectors() []*reflector {
	return append(w.registry.reflectors(), append([]*reflector{w.definitions}, w.core...)...)
}
