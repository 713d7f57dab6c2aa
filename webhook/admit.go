package webhook

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// judge is what stands behind a door.
type evaluator struct {
	// act names what it does, for traces.
	span string
	// answer answers a request on a view.
	evaluate func(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest) response
	// failed answers for it where it panics or does not answer in time.
	onFailure func(reason, message string) response
	// busy answers for it where it is never asked, for there is too much to do.
	onOverload func() response
}

// grace is how long a judge may take to notice that its time is over.
const grace = 50 * time.Millisecond

// ask waits for a free place and asks the judge, on the view of that moment. A
// write that gets its place so late that there is no time left to judge it is
// one of too many, and not one that takes too long.
func (s *Server) admit(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest, l *reservation, j evaluator) response {
	_, waiting := s.startSpan(ctx, spanQueue)
	ok := s.limiter.acquireSlot(ctx, l.weight)
	waiting.End()
	if !ok {
		return j.onOverload()
	}
	late := l.waitedTooLong(ctx)
	v = s.latestView(v, r)
	a := s.evaluateInTime(ctx, v, r, l, j)
	if a.view == nil {
		a.view = v
	}
	if late && !a.Allowed && a.reason == string(api.ReasonTooMuch) && ctx.Err() != nil {
		return j.onOverload()
	}
	return a
}

// newer returns the view of now, for a write that waited since the view v. One
// that does not have its kind as v has, since that is being listed anew, will not
// do.
func (s *Server) latestView(v *snapshot.View, r *admissionv1.AdmissionRequest) *snapshot.View {
	now, _ := s.Store.View()
	if kind := kindOf(r); now.Kind(kind) != v.Kind(kind) {
		return v
	}
	return now
}

// judged asks the judge, at a place that was entered. One that outlasts its
// deadline keeps its place and its load until it ends, but nobody waits for it:
// under failurePolicy Ignore a write without an answer is let through.
func (s *Server) evaluateInTime(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest, l *reservation, j evaluator) response {
	answers := make(chan response, 1)
	l.retain()
	go func() {
		defer l.release()
		defer s.limiter.releaseSlot(l.weight)
		answers <- s.evaluateRecovered(ctx, v, r, j)
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
		return j.onFailure(string(api.ReasonTooMuch), deadlineMessage(r))
	}
}

// outlasts says what takes too long: how far its judge is, nobody can ask.
func deadlineMessage(r *admissionv1.AdmissionRequest) string {
	ref := api.Ref{Group: r.Kind.Group, Kind: r.Kind.Kind, Namespace: r.Namespace, Name: r.Name}
	return fmt.Sprintf("%s: judging %s of %s (%d bytes) takes longer than a call may; write less at a time "+
		"(fewer rules, listeners, targets or conditions), or ask the cluster's administrator",
		api.ReasonTooMuch, r.Operation, ref, len(r.Object.Raw)+len(r.OldObject.Raw))
}

// undecided answers that nothing could be decided just now. Where nothing is
// denied there is nothing to wait for, either.
func (s *Server) denyUndecided(reason, message string) response {
	a := denyWithRetry(reason, message)
	if !s.Enforcement.Denies() {
		a = s.denyFailed(reason, message)
	}
	a.retry = true
	return a
}

// recovered asks the judge. A panic is an answer, too.
func (s *Server) evaluateRecovered(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest, j evaluator) (a response) {
	ctx, span := s.startSpan(ctx, j.span)
	defer span.End()
	defer func() {
		if p := recover(); p != nil {
			span.SetStatus(spanError, reasonPanic)
			s.Metrics.panicked()
			s.Log.Error(fmt.Errorf("panic: %v", p), "judge a write", "uid", r.UID, "stack", string(debug.Stack()))
			a = j.onFailure(reasonPanic, "overrule could not judge this write because of a fault of its own; its log tells more (uid "+string(r.UID)+")")
		}
	}()
	return j.evaluate(ctx, v, r)
}
