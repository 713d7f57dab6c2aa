package canary

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// Reasons of the condition and of Events.
const (
	reasonNotLeading = "NotLeading"
	reasonNotRun     = "NotRunYet"

	notLeading = "this replica is not the leader: the canary runs on the leader"
)

// reasons of outcomes.
var reasons = map[Outcome]string{Passed: "CanaryPassed", Failed: "CanaryFailed", Untried: "CanaryUntried"}

var statuses = map[Outcome]corev1.ConditionStatus{
	Passed: corev1.ConditionTrue, Failed: corev1.ConditionFalse, Untried: corev1.ConditionUnknown,
}

// Reporter tells of the runs of a Loop.
type Reporter struct {
	Record *Record
	Pod    *Pod
	// Arm, if set, is told first.
	Arm    *Arming
	Events events.EventRecorder
	Note   func(string) string // fits a text into an Event
	Log    logr.Logger
}

// Started tells that this replica leads.
func (h *Reporter) Started(ctx context.Context) {
	h.Record.Begin()
	h.Pod.SetCondition(ctx, corev1.ConditionUnknown, reasonNotRun, "this replica is the leader and has not run the canary yet")
}

// Stopped tells that it leads no more.
func (h *Reporter) Stopped(ctx context.Context) {
	h.Record.End()
	h.Pod.SetCondition(ctx, corev1.ConditionUnknown, reasonNotLeading, notLeading)
}

// Report tells of a result.
func (h *Reporter) Report(ctx context.Context, r Result) {
	if h.Arm != nil {
		h.Arm.Observe(r)
	}
	before := h.Record.Observe(r)
	message := "all dry-run writes were evaluated as expected"
	if r.Outcome != Passed {
		message = r.Message()
	}
	h.Pod.SetCondition(ctx, statuses[r.Outcome], reasons[r.Outcome], message)
	if before == nil || before.Outcome != r.Outcome {
		h.reportChange(r, message)
	}
}

// change tells of a result that is another than the one before.
func (h *Reporter) reportChange(r Result, message string) {
	kind := corev1.EventTypeNormal
	if r.Outcome == Passed {
		h.Log.Info("canary passed", "took", r.Took.String())
	} else {
		kind = corev1.EventTypeWarning
		h.Log.Error(nil, "canary did not pass", "outcome", r.Outcome, "message", message)
	}
	if pod := h.Pod.Ref(); pod != nil {
		h.Events.Eventf(pod, nil, kind, reasons[r.Outcome], "Canary", "%s", h.Note(message))
	}
}
