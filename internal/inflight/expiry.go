package inflight

import (
	"context"
	"time"
)

const (
	// DefaultRequestTimeout is the default of Options.RequestTimeout.
	DefaultRequestTimeout = time.Minute
	// readStoredTimeout is the timeout of a call of Options.ReadStored.
	readStoredTimeout = 5 * time.Second
	// checkInterval is the time between two calls for the same entry.
	checkInterval = 5 * time.Second
	// Bounds of the latency that is counted (latency.bound).
	minLatency = 5 * time.Second
	maxLatency = time.Minute
)

// expire ends the entries that the API server cannot store any more and has not stored.
// If Start has to find out, they end a moment later.
func (l *tracked) expire() {
	l.endRelisted()
	due := l.due()
	switch {
	case len(due) == 0:
	case l.Options.ReadStored == nil:
		for _, e := range due {
			l.end(e)
		}
		l.notify()
	default:
		select {
		case l.expiring <- struct{}{}:
		default:
		}
	}
}

// due returns the entries that the API server cannot store any more, unless they were
// checked a short time ago.
func (l *tracked) due() []*entry {
	now := time.Now()
	oldest := now.Add(-l.Options.RequestTimeout - l.latency.bound())
	var out []*entry
	for _, e := range l.entries {
		if e.admittedAt.After(oldest) {
			break // the others are newer
		}
		if e.endedAt == 0 && !e.checkAfter.After(now) {
			out = append(out, e)
		}
	}
	return out
}

// Start checks the entries that are due by Options.ReadStored, until ctx ends. Without
// it, none of them expires.
func (l *Log) Start(ctx context.Context) error {
	for {
		select {
		case <-l.expiring:
			l.checkDue(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *Log) checkDue(ctx context.Context) {
	l.mu.Lock()
	due := l.due()
	l.mu.Unlock()
	for _, e := range due {
		l.check(ctx, e)
	}
}

// check ends an entry that the API server cannot store any more if it is not stored: the
// cache will never have it. If it is stored, it stays until the cache has it, however
// late that is.
func (l *Log) check(ctx context.Context, e *entry) {
	ctx, cancel := context.WithTimeout(ctx, readStoredTimeout)
	defer cancel()
	stored, err := l.Options.ReadStored(ctx, e.ref)
	l.mu.Lock()
	defer l.mu.Unlock()
	e.checkAfter = time.Now().Add(checkInterval)
	if err == nil && e.endedAt == 0 && !e.observedBy(stored) {
		l.end(e)
		l.notify()
	}
}
