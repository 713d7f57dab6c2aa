package canary

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"overrule.dev/overrule/internal/background"
)

const (
	// MinInterval keeps the canary from being a load of its own.
	MinInterval = 5 * time.Second
	// again is when a run that did not pass is repeated: a lost packet is not
	// worth to disarm.
	retryDelay = 5 * time.Second
	// settling is what API servers may take to hear of webhook configurations.
	propagationDelay = 2 * time.Second
)

// Loop runs a canary on the leader.
type Loop struct {
	// Run is the canary's.
	Run      func(context.Context) Result
	Interval time.Duration
	// Ready waits until the webhooks are in place. The first run is soon after,
	// and an Interval after the start at the latest: webhooks that cannot be put
	// in place are a failure, too.
	Ready func(context.Context)
	// Report is called with each result, and Ended when this replica leads no more.
	Report  func(context.Context, Result)
	Started func(context.Context)
	Stopped func(context.Context)
	Log     logr.Logger
}

// NeedLeaderElection tells controller-runtime to run a Loop on the leader.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it runs the canary until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	l.Started(ctx)
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), propagationDelay)
		defer cancel()
		l.Stopped(ending)
	}()
	if !l.waitReady(ctx) {
		return nil
	}
	last := Passed
	for {
		r := l.Run(ctx)
		if ctx.Err() != nil {
			return nil // what was cut off says nothing
		}
		l.Report(ctx, r)
		pause := l.Interval
		if r.Outcome != Passed && last == Passed {
			pause = min(pause, retryDelay)
		}
		last = r.Outcome
		if !background.Sleep(ctx, pause) {
			return nil
		}
	}
}

// await waits until the webhooks are in place, or ought to be.
func (l *Loop) waitReady(ctx context.Context) bool {
	waiting, cancel := context.WithTimeout(ctx, l.Interval)
	defer cancel()
	l.Ready(waiting)
	if waiting.Err() == nil {
		return background.Sleep(ctx, propagationDelay)
	}
	l.Log.Info("webhook configurations are not ready; running the canary anyway")
	return ctx.Err() == nil
}
