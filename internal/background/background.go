// Package background has what all work beside the judging needs.
package background

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Sleep waits, and reports whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil // both may have come
	case <-ctx.Done():
		return false
	}
}

// ErrPanic is in the error of what panicked.
var ErrPanic = errors.New("panic")

// Recovered is to be deferred. It makes a panic the error of what its function was doing:
// what judges must outlive what only reads, or tells.
func Recovered(err *error, doing string) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%s: %w: %v\n%s", doing, ErrPanic, cause, debug.Stack())
	}
}
