package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/webhook"
)

// warningEvents reports the warnings of /readyz as Events on the replica's pod.
type warningEvents struct {
	warnings  map[string]func() error
	regarding *corev1.ObjectReference
	events    webhook.EventRecorder
}

// warningInterval is the time between two checks. A warning that is present in two
// of them in a row is reported: at startup there are many that do not last.
const warningInterval = 30 * time.Second

func newWarningEvents(warnings map[string]func() error, namespace string, events webhook.EventRecorder) *warningEvents {
	return &warningEvents{warnings: warnings, events: events, regarding: &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: hostname(),
	}}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// reports its own warnings.
func (w *warningEvents) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (w *warningEvents) Start(ctx context.Context) error {
	seen := make(map[string]int)
	_ = wait.PollUntilContextCancel(ctx, warningInterval, false, func(context.Context) (bool, error) {
		w.check(seen)
		return false, nil
	})
	return nil
}

// check reports the warnings that are seen for the second time in a row. Each is
// reported once until it disappears, even if its text changes: it may contain a
// time.
func (w *warningEvents) check(seen map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(w.warnings)) {
		err := w.warnings[name]()
		if err == nil {
			delete(seen, name)
		} else if seen[name]++; seen[name] == 2 {
			w.events.Eventf(w.regarding, nil, corev1.EventTypeWarning, warningReason(name), "Check", "%s", guard.EventNote(err.Error()))
		}
	}
}

// warningReason is the reason of the Events of a warning: CertificateWarning.
func warningReason(name string) string { return strings.ToUpper(name[:1]) + name[1:] + "Warning" }

func (a *app) addWarningEvents() error {
	return a.manager.Add(newWarningEvents(a.probes.warnings, a.options.namespace, a.manager.GetEventRecorder("overrule")))
}
