package webhook

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/webhookconfig"
)

// allowSystemWrites allows a system write (webhookconfig.SystemWrite) that was denied
// because it could not be evaluated: its webhook has failurePolicy Ignore, but a denial
// is not a failure, and a controller would retry for ever. The cause goes to the audit
// log. A deletion that was evaluated keeps its decision.
func (s *Server) allowSystemWrites(r *admissionv1.AdmissionRequest, resp response) response {
	evaluated := resp.evaluated && resp.reason != string(api.ReasonTooMuch)
	// In another version, both objects may lack a field of the stored one.
	if resp.reason == "" || evaluated && (r.Operation == admissionv1.Delete || otherVersion(r)) {
		return resp
	}
	cause := webhookconfig.SystemWrite(r)
	if cause == "" {
		return resp
	}
	s.opts.Log.Info("system write not denied", "cause", cause, "reason", resp.reason, "uid", r.UID, "operation", r.Operation,
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
