package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/controllers/canary"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// does is what an enforcement does about a denial.
var does = map[guard.Enforcement]api.Action{
	guard.EnforceDeny: api.Deny, guard.EnforceWarn: api.Warn, guard.EnforceAudit: api.Audit,
}

// lookout is the canary of a server, and what becomes of its runs.
type lookout struct {
	loop   *canary.Loop
	pod    *canary.Pod
	record *canary.Record
	arm    *canary.Arming // nil without --arm

	inPlace chan struct{} // closed once the webhooks are
	once    sync.Once
}

// newLookout returns that of the flags, nil if they want none.
func newLookout(mgr manager.Manager, cfg *rest.Config, client kubernetes.Interface, objects *snapshot.Store, o options, log logr.Logger) (*lookout, error) {
	if o.canaryInterval == 0 {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	c, err := canary.New(cfg, canary.Options{Does: does[o.enforcement], Namespace: o.canaryNamespace, Configuration: configurations})
	if err != nil {
		return nil, fmt.Errorf("make a canary: %w", err)
	}
	l := &lookout{
		record:  canary.NewRecord(o.arm),
		pod:     &canary.Pod{Client: client.CoreV1(), Namespace: o.namespace, Name: o.podName, Log: log},
		inPlace: make(chan struct{}),
	}
	if o.arm {
		l.arm = canary.NewArming()
	}
	herald := &canary.Reporter{
		Record: l.record, Pod: l.pod, Arm: l.arm, Events: mgr.GetEventRecorder("overrule"), Note: guard.EventNote, Log: log,
	}
	l.loop = &canary.Loop{
		Run: c.Run, Interval: o.canaryInterval, Ready: l.registered,
		Started: herald.Started, Report: herald.Report, Stopped: herald.Stopped, Log: log,
	}
	if !o.manageWebhooks {
		l.loop.Ready = func(ctx context.Context) { listed(ctx, objects) }
	}
	return l, nil
}

// registered waits until this replica has written the webhooks.
func (l *lookout) registered(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-l.inPlace:
	}
}

// listed waits until this replica can judge: webhooks that are another's to
// write may have been there long before.
func listed(ctx context.Context, objects *snapshot.Store) {
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		_, ready := objects.View()
		return ready, nil
	})
}

// join adds a lookout to a server.
func (l *lookout) join(mgr manager.Manager, registry prometheus.Registerer, probes *health) error {
	if l == nil {
		return nil
	}
	probes.note("canary", l.record.Problem)
	return errors.Join(registry.Register(l.record), mgr.Add(l.loop), mgr.Add(bystander{l.pod}))
}

// wrote is told that the webhook configurations were written.
func (l *lookout) wrote(policy admissionregistrationv1.FailurePolicyType) {
	if l == nil {
		return
	}
	l.record.Wrote(policy == admissionregistrationv1.Fail)
	l.once.Do(func() { close(l.inPlace) })
}

// arming is nil where nothing is armed.
func (l *lookout) arming() webhookconfig.Arming {
	if l == nil || l.arm == nil {
		return nil
	}
	return l.arm
}

// bystander tells each replica's pod that it does not lead.
type bystander struct{ pod *canary.Pod }

// NeedLeaderElection lets every replica tell so.
func (bystander) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (b bystander) Start(ctx context.Context) error {
	b.pod.Idle(ctx)
	return nil
}
