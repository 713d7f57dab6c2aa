package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// retryDelay is the delay after a failure.
const retryDelay = time.Second

// loop keeps a replica in step with files or a Secret. It is a part of what does so.
type loop struct {
	wake    chan struct{} // any number of signals count as one
	lastErr atomic.Pointer[error]
	log     logr.Logger
	subject string // of failures
}

func newLoop(log logr.Logger, subject string) loop {
	return loop{wake: make(chan struct{}, 1), log: log, subject: subject}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica has
// certificates and tokens.
func (*loop) NeedLeaderElection() bool { return false }

// run calls sync until ctx ends: again after the delay that it returns, or when the loop
// is woken up.
func (l *loop) run(ctx context.Context, c clock.Clock, sync func(context.Context) (time.Duration, error)) error {
	for ctx.Err() == nil {
		delay, err := sync(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if l.record(err); err != nil {
			delay = min(delay, retryDelay)
		}
		timer := c.NewTimer(delay)
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
	return nil
}

// wakeUp makes the loop sync now.
func (l *loop) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// record keeps the result of a sync, and logs each new error once.
func (l *loop) record(err error) {
	previous := l.lastErr.Swap(&err)
	if err != nil && (previous == nil || *previous == nil || (*previous).Error() != err.Error()) {
		l.log.Error(err, "cannot sync "+l.subject)
	}
}

func (l *loop) failure() error {
	if err := l.lastErr.Load(); err != nil {
		return *err
	}
	return nil
}

// withCause adds the last failure to err, if there is one.
func (l *loop) withCause(err error) error {
	if failure := l.failure(); failure != nil {
		return fmt.Errorf("%w: %w", err, failure)
	}
	return err
}

// expired returns an error with the last failure if a serving certificate has expired.
func (l *loop) expired(cert *x509.Certificate, now time.Time) error {
	if now.Before(cert.NotAfter) {
		return nil
	}
	return l.withCause(fmt.Errorf("serving certificate expired at %s", formatTime(cert.NotAfter)))
}

// held is a value that a loop keeps, also while what it reads is invalid.
type held[T any] struct {
	loop
	value   atomic.Pointer[T] // nil until known; immutable
	unknown error
}

func newHeld[T any](log logr.Logger, subject string, unknown error) held[T] {
	return held[T]{loop: newLoop(log, subject), unknown: unknown}
}

// current returns the value; zero before it is known.
func (h *held[T]) current() (value T) {
	if known := h.value.Load(); known != nil {
		value = *known
	}
	return value
}

// Healthy is a readiness check: nil once there is a value.
func (h *held[T]) Healthy(*http.Request) error {
	if h.value.Load() != nil {
		return nil
	}
	return h.withCause(h.unknown)
}

// Problem returns the last failure while an earlier value is in use.
func (h *held[T]) Problem() error {
	if err := h.failure(); err != nil && h.value.Load() != nil {
		return fmt.Errorf("%w; the previous %s stay in use", err, h.subject)
	}
	return nil
}
