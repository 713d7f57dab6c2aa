package canary

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// Reasons of the condition and of Events if no run has a result.
const (
	reasonNotLeading = "NotLeading"
	reasonNotRun     = "NotRunYet"

	notLeading = "this replica is not the leader: the canary runs on the leader"
)

// reasons by outcome.
var reasons = map[Outcome]string{Passed: "CanaryPassed", Failed: "CanaryFailed", Untried: "CanaryUntried"}

var statuses = map[Outcome]corev1.ConditionStatus{
	Passed: corev1.ConditionTrue, Failed: corev1.ConditionFalse, Untried: corev1.ConditionUnknown,
}

// Reporter reports the runs of a Loop as metrics, as a Pod condition, and as logs and
// Events.
type Reporter struct {
	Record *Record
	Pod    *Pod
	// Arm observes each result before it is reported; nil for none.
	Arm    *Arming
	Events events.EventRecorder
	Note   func(string) string // shortens a text to the size of an Event note
	Log    logr.Logger
}

// Started reports that this replica has become the leader.
func (rep *Reporter) Started(ctx context.Context) {
	rep.Record.Begin()
	rep.Pod.SetCondition(ctx, corev1.ConditionUnknown, reasonNotRun, "this replica is the leader and has not run the canary yet")
}

// Stopped reports that this replica is no longer the leader.
func (rep *Reporter) Stopped(ctx context.Context) {
	rep.Record.End()
	if rep.Arm != nil {
		rep.Arm.Reset()
	}
	rep.Pod.SetCondition(ctx, corev1.ConditionUnknown, reasonNotLeading, notLeading)
}

// Report reports a result.
func (rep *Reporter) Report(ctx context.Context, r Result) {
	if rep.Arm != nil {
		rep.Arm.Observe(r)
	}
	before := rep.Record.Observe(r)
	message := "all dry-run writes were evaluated as expected"
	if r.Outcome != Passed {
		message = r.Message()
	}
	rep.Pod.SetCondition(ctx, statuses[r.Outcome], reasons[r.Outcome], message)
	if before == nil || before.Outcome != r.Outcome {
		rep.reportChange(r, message)
	}
}

// reportChange logs a result with another outcome than the previous one, and records an
// Event.
func (rep *Reporter) reportChange(r Result, message string) {
	kind := corev1.EventTypeNormal
	if r.Outcome == Passed {
		rep.Log.Info("canary passed", "took", r.Took.String())
	} else {
		kind = corev1.EventTypeWarning
		rep.Log.Error(nil, "canary did not pass", "outcome", r.Outcome, "message", message)
	}
	if pod := rep.Pod.Ref(); pod != nil {
		rep.Events.Eventf(pod, nil, kind, reasons[r.Outcome], "Canary", "%s", rep.Note(message))
	}
}
