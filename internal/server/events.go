package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/webhook"
)

// trouble tells in Events what /readyz notes: that somebody should look at a
// replica though it does its work. Whoever reads no logs reads those.
type warningEvents struct {
	warnings  map[string]func() error
	regarding *corev1.ObjectReference
	events    webhook.EventRecorder
}

// noteEvery is the time between two looks. What stands at two of them in a row
// is told: a start has many notes that do not last.
const warningInterval = 30 * time.Second

func newWarningEvents(notes map[string]func() error, namespace string, events webhook.EventRecorder) *warningEvents {
	return &warningEvents{warnings: notes, events: events, regarding: &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: hostname(),
	}}
}

// NeedLeaderElection lets every replica tell of itself.
func (t *warningEvents) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (t *warningEvents) Start(ctx context.Context) error {
	tick := time.NewTicker(warningInterval)
	defer tick.Stop()
	present, reported := map[string]bool{}, map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			t.check(present, reported)
		}
	}
}

// look tells of the notes that stood at the last look, each once for as long as
// it stands: what it says may have a time in it.
func (t *warningEvents) check(present map[string]bool, reported map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(t.warnings)) {
		err := t.warnings[name]()
		if err == nil {
			delete(present, name)
			delete(reported, name)
			continue
		}
		if present[name] && !reported[name] {
			reported[name] = true
			t.events.Eventf(t.regarding, nil, corev1.EventTypeWarning, warningReason(name), "Look", "%s", guard.EventNote(err.Error()))
		}
		present[name] = true
	}
}

// troubleReason is the reason of the Events of a note: CertificateTrouble.
func warningReason(note string) string { return strings.ToUpper(note[:1]) + note[1:] + "Trouble" }
