package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// validate decides on a write.
func validate(ctx context.Context, call *call, v *snapshot.View) response {
	r, maxObject := call.request, call.opts.MaxObject
	if r.SubResource == subresourceScale && r.Operation == admissionv1.Update {
		return call.denyFailed(string(api.ReasonNotRead), scaleMessage(r))
	}
	c, err := decodeChange(v, r, call.opts.Now())
	switch {
	case errors.Is(err, snapshot.ErrKind), r.SubResource != "" && !subresourceMatters(v, r):
		return allow() // a status does not affect effective policies
	case err != nil:
		return call.denyFailed(string(api.ReasonInvalid), err.Error())
	case tooLarge(r, maxObject):
		return call.denyFailed(string(api.ReasonTooMuch), tooLargeMessage(r, maxObject))
	}
	if err := call.useStored(ctx, v, r, &c); err != nil {
		return call.denyUndecided(api.DenialFailed, evaluationFailed(err))
	}
	if policyUnchanged(r, c) {
		return allow()
	}
	if p, ok := c.After.(*policykind.Policy); ok {
		c.After = p.Pack() // as those in the view are, with which it is compared
	}
	resp, err := call.decide(ctx, v, c)
	unseen, _ := errors.AsType[*guard.UnlistedKindError](err)
	switch {
	case errors.Is(err, effective.ErrTooMuch):
		return call.denyFailed(string(api.ReasonTooMuch), deadlineMessage(r))
	case errors.Is(err, coordination.ErrNotLeading):
		return call.denyUndecided(api.DenialNoLeader, noLeaderMessage)
	case unseen != nil:
		return call.denyUndecided(api.DenialPoliciesUnlisted, printable(unseen.Error()))
	case errors.Is(err, guard.ErrPermissions):
		return call.denyUndecided(api.DenialRightsUnknown, evaluationFailed(err))
	case err != nil: // a read from the API server failed
		return call.denyUndecided(api.DenialFailed, evaluationFailed(err))
	}
	return resp
}

func evaluationFailed(err error) string {
	return fmt.Sprintf("cannot evaluate this write: %v; retry in 1s", err)
}

// decide evaluates a change together with the writes in flight.
func (c *call) decide(ctx context.Context, v *snapshot.View, change guard.Change) (response, error) {
	latest := func() *snapshot.View { // that of the last attempt
		if c.opts.InFlight != nil {
			v = c.currentView()
		}
		return v
	}
	w := c.inFlightWrite(c.request, change)
	if c.place != nil {
		w.Admissible = func() error { return c.opts.Coordinator.Check(*c.place, c.timeout) }
		w.Review = func() []byte { return c.body }
	}
	d, err := c.opts.InFlight.Evaluate(ctx, c.opts.Guard, latest, w)
	if err != nil {
		return response{}, err
	}
	resp := fromDecision(d.Decision, c.opts.Enforcement)
	if resp.view = v; d.Retry {
		resp.retryLater()
	}
	return resp, nil
}

// inFlightWrite returns a change for the log of writes in flight.
func (s *Server) inFlightWrite(r *admissionv1.AdmissionRequest, c guard.Change) inflight.Write {
	return inflight.Write{
		Change: c, Precondition: func() inflight.Precondition { return preconditionOf(r) },
		Size: int64(len(r.Object.Raw)), Generated: hasGeneratedName(r), Finalized: removesLastFinalizer(r),
		DryRun: isDryRun(r), Enforcement: s.opts.Enforcement,
	}
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

// allowSystemWrites allows a system write (webhookconfig.SystemWrite) that was denied
// because it could not be evaluated: its webhook has failurePolicy Ignore, but a denial
// is not a failure, and a controller would retry for ever. The cause goes to the audit
// log. A deletion that was evaluated keeps its decision.
func (c *call) allowSystemWrites(resp response) response {
	r := c.request
	evaluated := resp.evaluated && resp.reason != string(api.ReasonTooMuch)
	// In another version, both objects may lack a field of the stored one.
	if resp.reason == "" || evaluated && (r.Operation == admissionv1.Delete || otherVersion(r)) {
		return resp
	}
	cause := webhookconfig.SystemWrite(r)
	if cause == "" {
		return resp
	}
	c.opts.Log.Info("system write not denied", "cause", cause, "reason", resp.reason, "uid", r.UID, "operation", r.Operation,
		"kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name)
	message := resp.message
	if prefix := resp.reason + ": "; !strings.HasPrefix(message, prefix) {
		message = prefix + message
	}
	resp.setAuditAnnotation(auditAnnotationAudit, message+" (not denied: "+cause+")")
	delete(resp.AuditAnnotations, auditAnnotationDenied)
	delete(resp.AuditAnnotations, auditAnnotationWouldDeny)
	resp.Allowed, resp.Result, resp.Warnings, resp.reason, resp.retry = true, nil, nil, "", false
	return resp
}
