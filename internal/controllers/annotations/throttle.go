package annotations

import (
	"context"
	"time"

	"overrule.dev/overrule/internal/background"
)

const (
	// stretch is how long it works without a rest: less than what a review takes
	// anyway, so that none of them waits for it.
	maxBurst = 2 * time.Millisecond
	// often is how many steps are taken without a look at the clock.
	checkEvery = 16
)

// pace has work rest for as long as it took, again and again: admission comes
// first. It is of one goroutine at a time.
type throttle struct {
	started time.Time
	steps   int
}

// step is called after each small piece of work. The error is that of ctx.
func (p *throttle) step(ctx context.Context) error {
	if p.steps++; p.steps%checkEvery != 0 {
		return nil
	}
	took := time.Since(p.started)
	if took < maxBurst {
		return nil
	}
	// What took very long was not all work: a request, or a wait for one.
	background.Sleep(ctx, min(took, 2*maxBurst))
	p.started = time.Now()
	return ctx.Err()
}
