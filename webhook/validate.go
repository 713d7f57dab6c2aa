package webhook

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
)

// decide judges a change with what was admitted and not seen yet in mind.
func (s *Server) evaluateChange(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest, c guard.Change) (response, error) {
	if s.InFlight == nil {
		j, err := s.Guard.Evaluate(ctx, v, c, nil)
		if err != nil {
			return response{}, err
		}
		a := fromDecision(j, s.Enforcement)
		a.view = v
		return a, nil
	}
	var on *snapshot.View // the last one that it was tried on
	now := func() *snapshot.View {
		on, _ = s.Store.View()
		return on
	}
	d, err := s.InFlight.Evaluate(ctx, s.Guard, now, inflight.Write{
		Change: c, Precondition: func() inflight.Precondition { return preconditionOf(r) },
		Size: int64(len(r.Object.Raw)), Generated: hasGeneratedName(r), Finalized: removesLastFinalizer(r),
		DryRun: r.DryRun != nil && *r.DryRun, Enforcement: s.Enforcement,
	})
	if err != nil {
		return response{}, err
	}
	a := fromDecision(d.Decision, s.Enforcement)
	a.view = on
	if d.Retry {
		retryLater(&a)
	}
	return a, nil
}

// generated reports whether a request creates an object whose name the API
// server may make again.
func hasGeneratedName(r *admissionv1.AdmissionRequest) bool {
	return r.Operation == admissionv1.Create && unquoted(jsonField(jsonField(r.Object.Raw, "metadata"), "generateName")) != ""
}

// finalized reports whether a request takes the last finalizer off an object
// that is being deleted.
func removesLastFinalizer(r *admissionv1.AdmissionRequest) bool {
	if r.Operation != admissionv1.Update {
		return false
	}
	was, is := jsonField(r.OldObject.Raw, "metadata"), jsonField(r.Object.Raw, "metadata")
	return notEmpty(jsonField(was, "deletionTimestamp")) && notEmpty(jsonField(was, "finalizers")) && !notEmpty(jsonField(is, "finalizers"))
}

// filled reports whether there is a JSON value that is not empty.
func notEmpty(value []byte) bool {
	switch strings.Join(strings.Fields(string(value)), "") {
	case "", "null", `""`, "[]":
		return false
	}
	return true
}
