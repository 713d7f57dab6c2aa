package webhook

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/store"
)

// judge is what stands behind a door.
type judge struct {
	// answer answers a request on a view.
	answer func(ctx context.Context, v *store.View, r *admissionv1.AdmissionRequest) answer
	// failed answers for it where it panics or does not answer in time.
	failed func(reason, message string) answer
}

// grace is how long a judge may take to notice that its time is over.
const grace = 50 * time.Millisecond

// ask waits for a free place and asks the judge. One that outlasts its deadline
// keeps its place until it ends, but nobody waits for it: under failurePolicy
// Ignore a write without an answer is let through.
func (s *Server) ask(ctx context.Context, v *store.View, r *admissionv1.AdmissionRequest, j judge) answer {
	leave, ok := s.gate.enter(ctx)
	if !ok {
		return s.undecided(j.failed, "Overloaded", overload)
	}
	answers := make(chan answer, 1)
	go func() {
		defer leave()
		answers <- s.recovered(ctx, v, r, j)
	}()
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return a
	case <-time.After(grace):
		s.Log.Info("judging a write outlasts its deadline", "uid", r.UID, "kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name)
		return j.failed(string(api.ReasonTooMuch), "judging this write takes longer than a call may; make it smaller, or ask the cluster's administrator")
	}
}

// undecided answers that nothing could be decided just now. Where nothing is
// denied there is nothing to wait for, either.
func (s *Server) undecided(failed func(reason, message string) answer, reason, message string) answer {
	a := later(reason, message)
	if !s.Enforcement.Denies() {
		a = failed(reason, message)
	}
	a.again = true
	return a
}

// recovered asks the judge. A panic is an answer, too.
func (s *Server) recovered(ctx context.Context, v *store.View, r *admissionv1.AdmissionRequest, j judge) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			s.Metrics.panicked()
			s.Log.Error(fmt.Errorf("panic: %v", p), "judge a write", "uid", r.UID, "stack", string(debug.Stack()))
			a = j.failed("Panic", "overrule could not judge this write because of a fault of its own; its log tells more (uid "+string(r.UID)+")")
		}
	}()
	return j.answer(ctx, v, r)
}
