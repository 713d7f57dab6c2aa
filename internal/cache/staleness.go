package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

const (
	// StaleAfter is how long a resource may be without a watch before nothing is
	// judged by what is known of it. It is longer than an API server that starts
	// anew in some seconds is away, and than a watch takes to be opened again: no
	// write is lost to that. Meanwhile most writes have nobody to ask anyway; but
	// where there are several API servers, those that come by another one are
	// judged by a picture as old as this, and by what it takes to notice that a
	// connection is dead.
	StaleAfter = 10 * time.Second
	// hopelessAfter is how long a server that starts waits for a policy kind that the
	// API server does not give out: it may only be overloaded.
	initialListTimeout = 30 * time.Second
	// silentAfter is how long an open watch may tell nothing. Bookmarks come about
	// once a minute: two of them are missing.
	silenceTimeout = 3 * time.Minute
	// lookEvery is the time between two looks at the sources.
	checkInterval = 500 * time.Millisecond
)

// errAsleep tells that nothing was read, as of a process that was stopped.
var errSuspended = errors.New("process was suspended or its node is overloaded; resyncing")

// ground is what is known of the freshness of what judgements stand on.
type staleness struct {
	// at is when this was found.
	checkedAt time.Time
	// whole is why nothing can be judged, nil if all else can.
	err error
	// kinds are the policy kinds whose writes cannot be judged, and why.
	kinds map[api.PolicyKind]error
}

// stale reports whether what is known of a source is too old to judge by.
func (h SourceHealth) stale(now time.Time) bool {
	return !h.DisconnectedSince.IsZero() && now.Sub(h.DisconnectedSince) > StaleAfter
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

// assess finds what can be judged by sources that are sorted.
//
// A policy kind closes that kind alone: all else is judged by the last that is
// known of it, since a right that is missing for one kind, or a conversion
// webhook that is gone, must not close the gateways to everyone. A connection
// that is dead hides what matters to any path; but then the other resources,
// which come by the same, are stale as well, and they close all.
func evaluateStaleness(sources []SourceHealth, now time.Time) *staleness {
	g := &staleness{checkedAt: now, kinds: make(map[api.PolicyKind]error)}
	others := 0
	for _, s := range sources {
		switch {
		case !s.stale(now):
		case s.Kind != api.PolicyKind{}:
			g.kinds[s.Kind] = s.staleError(now)
		case g.err == nil:
			g.err = s.staleError(now)
		default:
			others++
		}
	}
	if others > 0 {
		g.err = fmt.Errorf("%w (and %d more resources)", g.err, others)
	}
	return g
}

// Stale tells why nothing may be judged by what is known of the cluster: it is
// too old. It is nil as long as nothing is known at all, which the store tells.
func (w *Watcher) Stale() error {
	g := w.staleness.Load()
	if g == nil {
		return nil
	}
	// Whoever slept through the looks must not believe the last one.
	if asleep := time.Since(g.checkedAt); asleep > StaleAfter {
		return fmt.Errorf("watches not checked for %s: %w", asleep.Round(time.Second), errSuspended)
	}
	return g.err
}

// Current tells why the write of an object of a kind may not be judged by what
// is known of the cluster, or nil if it may: Stale, and for a policy kind that
// cannot be read any more that, too.
func (w *Watcher) Current(kind api.PolicyKind) error {
	if err := w.Stale(); err != nil {
		return err
	}
	if g := w.staleness.Load(); g != nil {
		return g.kinds[kind]
	}
	return nil
}

// Unread tells which policy kinds cannot be read any more, or could never be, so
// that their writes are not judged, and nil if there are none.
func (w *Watcher) Unread() error {
	g := w.staleness.Load()
	if g == nil {
		return nil
	}
	out := w.registry.unlistableKinds()
	for _, s := range w.Health() { // for the order
		if err := g.kinds[s.Kind]; err != nil {
			out = append(out, err.Error())
		}
	}
	if len(out) == 0 {
		return nil
	}
	return errors.New(strings.Join(out, "; ")) //nolint:err113 // it is text for whoever reads /readyz
}

// supervise looks after the watches until the context ends.
func (w *Watcher) supervise(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	ready := false
	for {
		w.checkSources(time.Now())
		if _, now := w.registry.store.View(); now && !ready {
			ready = true
			signal(w.registry.statusChanged) // from now on it is certain which targets do not exist
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look opens watches that are dead again, and tells what can be judged.
func (w *Watcher) checkSources(now time.Time) {
	last := w.staleness.Load()
	for _, f := range w.reflectors() {
		switch {
		case last != nil && now.Sub(last.checkedAt) > StaleAfter:
			f.health.markStalled(last.checkedAt)
			f.restartWatch("process was suspended")
		case f.health.isSilent():
			f.health.markStalled(now) // if another cannot be opened, this one counts for nothing
			f.restartWatch("no event or bookmark received")
		}
	}
	if h := w.definitions.health.get(); h.Synced && h.DisconnectedSince.IsZero() {
		w.registry.markUnlistable(now) // the API server is there: it is they who are not
	}
	g := evaluateStaleness(w.Health(), now)
	w.staleness.Store(g)
	switch {
	case last == nil || (last.err == nil) == (g.err == nil):
	case g.err == nil:
		w.registry.log.Info("cache is up to date again")
	default:
		w.registry.log.Error(g.err, "cache is stale")
	}
}

// feeds returns all that is being read.
func (w *Watcher) reflectors() []*reflector {
	return append(w.registry.reflectors(), append([]*reflector{w.definitions}, w.core...)...)
}
