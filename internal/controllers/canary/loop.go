package canary

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"overrule.dev/overrule/internal/background"
)

const (
	// MinInterval is the minimum interval, which limits the load of the canary.
	MinInterval = 5 * time.Second
	// retryDelay is the delay before a failed run is repeated: a lost packet must not
	// disarm the webhooks.
	retryDelay = 5 * time.Second
	// propagationDelay is how long API servers may take to observe webhook
	// configurations.
	propagationDelay = 2 * time.Second
)

// Loop runs a canary periodically on the leader.
type Loop struct {
	// Run runs the canary once.
	Run      func(context.Context) Result
	Interval time.Duration
	// Ready blocks until the webhook configurations are written. The first run follows
	// shortly after it, and one Interval after the start at the latest: configurations
	// that cannot be written must be reported as a failure, too.
	Ready func(context.Context)
	// Report is called with each result, Started when this replica becomes the leader,
	// and Stopped when it no longer is.
	Report  func(context.Context, Result)
	Started func(context.Context)
	Stopped func(context.Context)
	Log     logr.Logger
}

// NeedLeaderElection returns true: a Loop runs on the leader.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it runs the canary until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	l.Started(ctx)
	defer func() {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), propagationDelay)
		defer cancel()
		l.Stopped(stopCtx)
	}()
	if !l.waitReady(ctx) {
		return nil
	}
	last := Passed
	for {
		r := l.Run(ctx)
		if ctx.Err() != nil {
			return nil // the result of a canceled run means nothing
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

// waitReady blocks until the webhook configurations are written, one Interval at most.
// It returns false if ctx ends.
func (l *Loop) waitReady(ctx context.Context) bool {
	readyCtx, cancel := context.WithTimeout(ctx, l.Interval)
	defer cancel()
	l.Ready(readyCtx)
	if readyCtx.Err() == nil {
		return background.Sleep(ctx, propagationDelay)
	}
	l.Log.Info("webhook configurations are not ready; running the canary anyway")
	return ctx.Err() == nil
}
