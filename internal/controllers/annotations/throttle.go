package annotations

import (
	"context"
	"time"

	"overrule.dev/overrule/internal/background"
)

const (
	// maxBurst is how long the controller computes without a pause: less than the
	// duration of a review, so that it does not delay reviews.
	maxBurst = 2 * time.Millisecond
	// checkEvery is the number of steps between two readings of the clock.
	checkEvery = 16
)

// throttle makes background work pause for as long as it worked: admission has
// priority. It must be used by one goroutine at a time.
type throttle struct {
	started time.Time
	steps   int
}

// step is called after each small unit of work. It returns the error of ctx.
func (t *throttle) step(ctx context.Context) error {
	if t.steps++; t.steps%checkEvery != 0 {
		return nil
	}
	elapsed := time.Since(t.started)
	if elapsed < maxBurst {
		return nil
	}
	// A long time includes waiting, for example for a request.
	background.Sleep(ctx, min(elapsed, 2*maxBurst))
	t.started = time.Now()
	return ctx.Err()
}
