package webhook

import (
	"strconv"
	"strings"
)

// Keys of the annotations in the audit log. The API server puts the name of the
// webhook and a slash before each.
const (
	auditAnnotationDenied      = "denied"       // the reason codes of a denial
	auditAnnotationWouldDeny   = "would-deny"   // likewise, with --enforcement=audit
	auditAnnotationAudit       = "audit"        // findings that are reported in the audit log alone
	auditAnnotationEvaluatedOn = "evaluated-on" // see recordVersion
)

// setAuditAnnotation sets an annotation of the request's entry in the audit log.
func (r *response) setAuditAnnotation(key, value string) {
	if r.AuditAnnotations == nil {
		r.AuditAnnotations = make(map[string]string)
	}
	r.AuditAnnotations[key] = value
}

// recordVersion sets the audit annotation evaluated-on: the resourceVersion of the view
// on which the write was evaluated, and the replica. Without a view it sets none.
func (s *Server) recordVersion(r *response, webhook string) {
	if r.view != nil && webhook == webhookValidate {
		r.setAuditAnnotation(auditAnnotationEvaluatedOn, strings.TrimSpace(strconv.FormatUint(r.viewVersion(), 10)+" "+s.opts.Replica))
	}
}
