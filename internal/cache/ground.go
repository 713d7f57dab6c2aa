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
	hopelessAfter = 30 * time.Second
	// silentAfter is how long an open watch may tell nothing. Bookmarks come about
	// once a minute: two of them are missing.
	silentAfter = 3 * time.Minute
	// lookEvery is the time between two looks at the sources.
	lookEvery = 500 * time.Millisecond
)

// errAsleep tells that nothing was read, as of a process that was stopped.
var errAsleep = errors.New("this process did not run, or its machine was busy; it reads the cluster anew")

// ground is what is known of the freshness of what judgements stand on.
type ground struct {
	// at is when this was found.
	at time.Time
	// whole is why nothing can be judged, nil if all else can.
	whole error
	// kinds are the policy kinds whose writes cannot be judged, and why.
	kinds map[api.PolicyKind]error
}

// stale reports whether what is known of a source is too old to judge by.
func (h SourceHealth) stale(now time.Time) bool {
	return !h.BlindSince.IsZero() && now.Sub(h.BlindSince) > StaleAfter
}

func (h SourceHealth) staleness(now time.Time) error {
	err := fmt.Errorf("%s: no watch has told of changes for %s", h.Source, now.Sub(h.BlindSince).Round(time.Second))
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
func assess(sources []SourceHealth, now time.Time) *ground {
	g := &ground{at: now, kinds: make(map[api.PolicyKind]error)}
	others := 0
	for _, s := range sources {
		switch {
		case !s.stale(now):
		case s.Kind != api.PolicyKind{}:
			g.kinds[s.Kind] = s.staleness(now)
		case g.whole == nil:
			g.whole = s.staleness(now)
		default:
			others++
		}
	}
	if others > 0 {
		g.whole = fmt.Errorf("%w (and %d more resources)", g.whole, others)
	}
	return g
}

// Stale tells why nothing may be judged by what is known of the cluster: it is
// too old. It is nil as long as nothing is known at all, which the store tells.
func (w *Watcher) Stale() error {
	g := w.ground.Load()
	if g == nil {
		return nil
	}
	// Whoever slept through the looks must not believe the last one.
	if asleep := time.Since(g.at); asleep > StaleAfter {
		return fmt.Errorf("no watch was looked after for %s: %w", asleep.Round(time.Second), errAsleep)
	}
	return g.whole
}

// Current tells why the write of an object of a kind may not be judged by what
// is known of the cluster, or nil if it may: Stale, and for a policy kind that
// cannot be read any more that, too.
func (w *Watcher) Current(kind api.PolicyKind) error {
	if err := w.Stale(); err != nil {
		return err
	}
	if g := w.ground.Load(); g != nil {
		return g.kinds[kind]
	}
	return nil
}

// Unread tells which policy kinds cannot be read any more, or could never be, so
// that their writes are not judged, and nil if there are none.
func (w *Watcher) Unread() error {
	g := w.ground.Load()
	if g == nil {
		return nil
	}
	out := w.registry.givenUp()
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
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	ready := false
	for {
		w.look(time.Now())
		if _, now := w.registry.store.View(); now && !ready {
			ready = true
			hint(w.registry.judged) // from now on it is certain which targets do not exist
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look opens watches that are dead again, and tells what can be judged.
func (w *Watcher) look(now time.Time) {
	last := w.ground.Load()
	for _, f := range w.feeds() {
		switch {
		case last != nil && now.Sub(last.at) > StaleAfter:
			f.contact.stopped(last.at)
			f.reopen("this process did not run for a while")
		case f.contact.silent():
			f.contact.stopped(now) // if another cannot be opened, this one counts for nothing
			f.reopen("not even a bookmark came for minutes")
		}
	}
	if h := w.definitions.contact.get(); h.Synced && h.BlindSince.IsZero() {
		w.registry.giveUp(now) // the API server is there: it is they who are not
	}
	g := assess(w.Health(), now)
	w.ground.Store(g)
	switch {
	case last == nil || (last.whole == nil) == (g.whole == nil):
	case g.whole == nil:
		w.registry.log.Info("what is known of the cluster is fresh again")
	default:
		w.registry.log.Error(g.whole, "what is known of the cluster is too old to judge by")
	}
}

// feeds returns all that is being read.
func (w *Watcher) feeds() []*feed {
	return append(w.registry.feeds(), append([]*feed{w.definitions}, w.core...)...)
}
