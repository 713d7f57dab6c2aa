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
