package webhook

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/webhookconfig"
)

// spared lets a write pass that meets ofSystem and was denied since it could not
// be judged: its entry passes over a server that is gone, but an answer is none
// of that, and a controller would ask again for ever. What was in the way is
// recorded. A deletion that was judged is denied as it is judged.
func (s *Server) allowSystemWrites(r *admissionv1.AdmissionRequest, a response) response {
	judged := a.evaluated && a.reason != string(api.ReasonTooMuch)
	// What another version does not have is missing in both of its objects.
	if a.reason == "" || judged && (r.Operation == admissionv1.Delete || otherVersion(r)) {
		return a
	}
	why := webhookconfig.SystemWrite(r)
	if why == "" {
		return a
	}
	s.Log.Info("not denied", "why", why, "reason", a.reason, "uid", r.UID, "operation", r.Operation,
		"kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name)
	said := a.message
	if prefix := a.reason + ": "; !strings.HasPrefix(said, prefix) {
		said = prefix + said
	}
	a.setAuditAnnotation("audit", said+" (not denied: "+why+")")
	delete(a.AuditAnnotations, "denied")
	delete(a.AuditAnnotations, "would-deny")
	a.Allowed, a.Result, a.Warnings, a.reason, a.retry = true, nil, nil, "", false
	return a
}
