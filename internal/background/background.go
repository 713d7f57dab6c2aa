// Package background has what controllers and caches share: a wait that a context
// interrupts, and the recovery from panics.
package background

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Sleep waits for d or until ctx ends. It reports whether ctx is still active.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil // both may be ready
	case <-ctx.Done():
		return false
	}
}

// ErrPanic is in the error that RecoverError sets.
var ErrPanic = errors.New("panic")

// RecoverError sets err if the calling function panics, with doing as its prefix and the
// stack. Defer it in background work, whose panic must not end the process.
func RecoverError(err *error, doing string) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%s: %w: %v\n%s", doing, ErrPanic, cause, debug.Stack())
	}
}
