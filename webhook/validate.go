package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// validate decides on a write.
func (s *Server) validate(ctx context.Context, v *snapshot.View, call *call) response {
	r := call.request
	if r.SubResource == subresourceScale && r.Operation == admissionv1.Update {
		return s.denyFailed(string(api.ReasonNotRead), scaleMessage(r))
	}
	c, err := decodeChange(v, r, s.opts.Now())
	switch {
	case errors.Is(err, snapshot.ErrKind), r.SubResource != "" && !subresourceMatters(v, r):
		return allow() // a status does not affect effective policies
	case err != nil:
		return s.denyFailed(string(api.ReasonInvalid), err.Error())
	case s.tooLarge(r):
		return s.denyFailed(string(api.ReasonTooMuch), s.tooLargeMessage(r))
	}
	if err := s.useStored(ctx, v, r, &c); err != nil {
		return s.denyUndecided(api.DenialFailed, evaluationFailed(err))
	}
	if policyUnchanged(r, c) {
		return allow()
	}
	resp, err := s.evaluateChange(ctx, v, call, c)
	unseen, _ := errors.AsType[*guard.UnlistedKindError](err)
	switch {
	case errors.Is(err, effective.ErrTooMuch):
		return s.denyFailed(string(api.ReasonTooMuch), deadlineMessage(r))
	case errors.Is(err, coordination.ErrNotLeading):
		return s.denyUndecided(api.DenialNoLeader, noLeaderMessage)
	case unseen != nil:
		return s.denyUndecided(api.DenialPoliciesUnlisted, printable(unseen.Error()))
	case errors.Is(err, guard.ErrPermissions):
		return s.denyUndecided(api.DenialRightsUnknown, evaluationFailed(err))
	case err != nil: // a read from the API server failed
		return s.denyUndecided(api.DenialFailed, evaluationFailed(err))
	}
	return resp
}

func evaluationFailed(err error) string {
	return fmt.Sprintf("cannot evaluate this write: %v; retry in 1s", err)
}

// evaluateChange evaluates a change together with the writes in flight.
func (s *Server) evaluateChange(ctx context.Context, v *snapshot.View, call *call, c guard.Change) (response, error) {
	if s.opts.InFlight == nil {
		d, err := s.opts.Guard.Evaluate(ctx, v, c, nil)
		if err != nil {
			return response{}, err
		}
		resp := fromDecision(d, s.opts.Enforcement)
		resp.view = v
		return resp, nil
	}
	var latest *snapshot.View // that of the last attempt
	current := func() *snapshot.View {
		latest, _ = s.opts.Store.View()
		return latest
	}
	d, err := s.opts.InFlight.Evaluate(ctx, s.opts.Guard, current, s.inFlightWrite(call, c))
	if err != nil {
		return response{}, err
	}
	resp := fromDecision(d.Decision, s.opts.Enforcement)
	resp.view = latest
	if d.Retry {
		resp.retryLater()
	}
	return resp, nil
}

// inFlightWrite returns a change for the log of writes in flight.
func (s *Server) inFlightWrite(call *call, c guard.Change) inflight.Write {
	r := call.request
	w := inflight.Write{
		Change: c, Precondition: func() inflight.Precondition { return preconditionOf(r) },
		Size: int64(len(r.Object.Raw)), Generated: hasGeneratedName(r), Finalized: removesLastFinalizer(r),
		DryRun: isDryRun(r), Enforcement: s.opts.Enforcement,
	}
	if call.place != nil {
		w.Admissible = func() error { return s.opts.Coordinator.Check(*call.place, call.timeout) }
		w.Review = func() []byte { return call.body }
	}
	return w
}

// denyFailed denies a write that could not be evaluated, so that no object can be
// crafted to bypass the evaluation.
func (s *Server) denyFailed(reason, message string) response {
	resp := deny(reason, printable(message)).applyEnforcement(s.opts.Enforcement, reason)
	if s.opts.Enforcement == guard.EnforceWarn {
		resp.Warnings = []string{warning(guard.Finding{What: wouldBeDenied + message})}
	}
	return resp
}

// denyUndecided denies a write on which there is no decision yet; the client retries.
// With an enforcement that does not deny, there is nothing to retry.
func (s *Server) denyUndecided(reason, message string) response {
	resp := denyWithRetry(reason, message)
	if !s.opts.Enforcement.Denies() {
		resp = s.denyFailed(reason, message)
	}
	resp.retry = true
	return resp
}

// denyOverloaded is the response of the validating webhook if there are too many
// reviews.
func (s *Server) denyOverloaded() response {
	return s.denyUndecided(api.DenialOverloaded, overloadMessage)
}

const (
	subresourceStatus = "status"
	subresourceScale  = "scale"
)

// statusStoresMetadata are the kinds whose status subresource stores labels and owners
// too.
var statusStoresMetadata = []api.PolicyKind{{Kind: gateway.KindNamespace}, {Kind: gateway.KindService}, policykind.KindDefinition}

// subresourceMatters reports whether a write of a subresource can change more than the
// status. The status of a policy stores all of the policy in the version in which it
// is written.
func subresourceMatters(v *snapshot.View, r *admissionv1.AdmissionRequest) bool {
	return slices.Contains(statusStoresMetadata, kindOf(r)) || r.SubResource == subresourceStatus && v.Kind(kindOf(r)) != nil
}

// scaleMessage explains the denial of a write of the scale subresource: the request
// holds a number, and not the policy that the API server writes it to. It is sent if it
// writes a field that is read, or the policy in another version.
func scaleMessage(r *admissionv1.AdmissionRequest) string {
	return fmt.Sprintf("%s: scale of %s/%s in namespace %q: a write of the scale subresource can change fields of the policy that it does not contain; update the policy instead",
		api.ReasonNotRead, r.Resource.Resource, r.Name, r.Namespace)
}

// DefaultMaxObject is the largest request that etcd accepts by default
// (--max-request-bytes).
const DefaultMaxObject = 1536 << 10

// tooLarge reports whether etcd will refuse an object, so that it does not have to be
// tracked. Custom resources are stored as JSON, as a review has them, and the rest of
// the request to etcd makes them larger. Objects of built-in kinds are stored in another
// form. An object that is no larger than before was stored as it is: then the limit is
// not that of this etcd.
func (s *Server) tooLarge(r *admissionv1.AdmissionRequest) bool {
	size := int64(len(r.Object.Raw))
	custom := r.Kind.Group != "" && r.Kind.Group != apiextensionsv1.GroupName
	return custom && r.SubResource == "" && size > s.opts.MaxObject && size > int64(len(r.OldObject.Raw))
}

func (s *Server) tooLargeMessage(r *admissionv1.AdmissionRequest) string {
	return fmt.Sprintf("%s: %s is too large: %d bytes, the limit is %d (--max-object-bytes); split the object or remove annotations",
		api.ReasonTooMuch, refOf(r), len(r.Object.Raw), s.opts.MaxObject)
}

func refOf(r *admissionv1.AdmissionRequest) api.Ref {
	return api.Ref{Group: r.Kind.Group, Kind: r.Kind.Kind, Namespace: r.Namespace, Name: r.Name}
}
