package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/controllers/canary"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// enforcementActions is what the server does with a denial, by enforcement.
var enforcementActions = map[guard.Enforcement]api.Action{
	guard.EnforceDeny: api.Deny, guard.EnforceWarn: api.Warn, guard.EnforceAudit: api.Audit,
}

// canaryRunner runs the canary on the leader, and publishes its results. A nil
// canaryRunner is disabled.
type canaryRunner struct {
	loop   *canary.Loop
	pod    *canary.Pod
	record *canary.Record
	arming *canary.Arming // nil without --arm

	mu         sync.Mutex
	configured chan struct{} // closed once the webhook configurations are written in this term
}

// addCanary adds the canary to the manager, unless the flags disable it.
func (a *app) addCanary() (err error) {
	if a.options.canaryInterval == 0 {
		return nil
	}
	if a.canary, err = a.newCanaryRunner(); err != nil {
		return err
	}
	a.probes.addWarning("canary", a.canary.record.Problem)
	return errors.Join(crmetrics.Registry.Register(a.canary.record), a.addLeaderWork(a.canary.loop), a.manager.Add(followerReporter{a.canary.pod}))
}

func (a *app) newCanaryRunner() (*canaryRunner, error) {
	o, log := a.options, a.log.WithName("canary")
	c, err := canary.New(a.config, canary.Options{Enforcement: enforcementActions[o.enforcement], Namespace: o.canaryNamespace, Configuration: webhookConfigName, Timeout: canary.TimeoutFor(o.webhookTimeout)})
	if err != nil {
		return nil, fmt.Errorf("create canary: %w", err)
	}
	r := &canaryRunner{
		record:     canary.NewRecord(o.arm),
		pod:        &canary.Pod{Client: a.client.CoreV1(), Namespace: o.namespace, Name: o.podName, Log: log},
		configured: make(chan struct{}),
	}
	if o.arm {
		r.arming = canary.NewArming()
	}
	reporter := &canary.Reporter{
		Record: r.record, Pod: r.pod, Arm: r.arming, Events: a.manager.GetEventRecorder("overrule"), Note: guard.EventNote, Log: log,
	}
	r.loop = &canary.Loop{
		Run: c.Run, Interval: o.canaryInterval, Ready: r.waitForWebhooks,
		Started: reporter.Started, Report: reporter.Report, Stopped: reporter.Stopped, Log: log,
	}
	if !o.manageWebhooks {
		r.loop.Ready = func(ctx context.Context) { waitForCaches(ctx, a.store) }
	}
	return r, nil
}

// waitForWebhooks waits until this replica has written the webhook
// configurations in its present term as leader.
func (r *canaryRunner) waitForWebhooks(ctx context.Context) {
	r.mu.Lock()
	configured := r.configured
	r.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-configured:
	}
}

// waitForCaches waits until the caches are synced. It replaces waitForWebhooks
// if the server does not write the webhook configurations: those may exist
// before this replica can evaluate writes.
func waitForCaches(ctx context.Context, store *snapshot.Store) {
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		_, ready := store.View()
		return ready, nil
	})
}

// webhooksWritten is called after the webhook configurations were written.
func (r *canaryRunner) webhooksWritten(policy admissionregistrationv1.FailurePolicyType) {
	if r == nil {
		return
	}
	r.record.SetArmed(policy == admissionregistrationv1.Fail)
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.configured:
	default:
		close(r.configured)
	}
}

// registrarStopped is called when this replica no longer writes the webhook
// configurations: what it wrote may not be in place any more.
func (r *canaryRunner) registrarStopped() {
	if r == nil {
		return
	}
	r.record.SetArmed(false)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configured = make(chan struct{})
}

// registrarArming returns what decides on failurePolicy; nil without --arm.
func (r *canaryRunner) registrarArming() webhookconfig.Arming {
	if r == nil || r.arming == nil {
		return nil
	}
	return r.arming
}

// conditionRetry is the time between attempts to write a condition.
const conditionRetry = 10 * time.Second

// followerReporter sets the canary condition of each replica's pod to "not the
// leader". The leader's reporter replaces it. It also retries failed writes of the
// condition: a replica that stops leading often cannot reach the API server.
type followerReporter struct{ pod *canary.Pod }

// NeedLeaderElection implements manager.LeaderElectionRunnable: it runs on every
// replica.
func (followerReporter) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (r followerReporter) Start(ctx context.Context) error {
	r.pod.Idle(ctx)
	for background.Sleep(ctx, conditionRetry) {
		r.pod.Retry(ctx)
	}
	return nil
}
