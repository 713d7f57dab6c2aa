package webhook

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// response is the response to a review, with what metrics, log and Events report.
type response struct {
	admissionv1.AdmissionResponse
	// reason is the code of the first denial, "" if there is none; message has all
	// denials, also if the write is allowed.
	reason, message string
	// retry is set if there is no decision and the client has to retry.
	retry bool
	// object is the object of the write, if it could be read.
	object api.Ref
	// evaluated is set if the guard evaluated the write, which changes this number
	// of paths.
	evaluated bool
	paths     int
	// view is the view on which the write was evaluated, nil for none.
	view *snapshot.View
}

func allow() response {
	return response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

// deny returns a denial with code 403, whose message kubectl prints.
func deny(reason, message string) response {
	return response{
		reason: reason, message: message,
		AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden,
			Reason: metav1.StatusReasonForbidden, Message: message,
			Details: api.DenialDetails(api.Reason{Code: api.ReasonCode(reason), Message: message}),
		}},
	}
}

// denyWithRetry returns a denial that clients such as kubectl retry.
func denyWithRetry(reason, message string) response {
	resp := deny(reason, message)
	resp.retryLater()
	return resp
}

// retryLater turns a denial into one that the client retries after a second.
func (r *response) retryLater() {
	r.retry = true
	if r.Result == nil {
		return // the write is allowed
	}
	r.Result.Code, r.Result.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	r.Result.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
}

// fromDecision returns the response for a decision of the guard.
func fromDecision(d *guard.Decision, e guard.Enforcement) response {
	resp := allow()
	var wouldDeny []guard.Finding
	if d.Denied() {
		resp = denyFindings(d.Denials).applyEnforcement(e, reasonCodes(d.Denials))
		if !e.Denies() {
			wouldDeny = d.Denials
		}
	}
	resp.object, resp.evaluated, resp.paths = d.Change.Object().Ref(), true, d.Changes.Paths
	if e != guard.EnforceAudit {
		resp.Warnings = warnings(wouldDeny, d.Warnings)
	}
	if len(d.Audits) > 0 {
		resp.setAuditAnnotation(auditAnnotationAudit, denialMessage(d.Audits))
	}
	return resp
}

// denyFindings returns a denial with the findings in its message and in its details.
func denyFindings(findings []guard.Finding) response {
	resp := deny(string(findings[0].Code), denialMessage(findings))
	var reasons []api.Reason
	for _, f := range guard.OmitRepeated(findings) {
		reason := f.Reason()
		reason.Message = printable(reason.Message)
		reasons = append(reasons, reason)
	}
	resp.Result.Details = api.DenialDetails(reasons...)
	return resp
}

// applyEnforcement returns a denial with the effect of an enforcement, and its reason
// codes as an audit annotation. The caller adds the warnings.
func (r response) applyEnforcement(e guard.Enforcement, codes string) response {
	key := auditAnnotationDenied
	if e == guard.EnforceAudit {
		key = auditAnnotationWouldDeny
	}
	r.setAuditAnnotation(key, codes)
	if !e.Denies() {
		r.Allowed, r.Result = true, nil
	}
	return r
}

// viewVersion returns the highest resourceVersion in the view on which the write was
// evaluated, 0 for none.
func (r *response) viewVersion() uint64 {
	if r.view == nil {
		return 0
	}
	return r.view.Version()
}

// denialMessage returns all findings, one per line, each with its reason code. Text from
// conditions of policies must not control the terminal.
func denialMessage(findings []guard.Finding) string {
	findings = guard.OmitRepeated(findings)
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = string(f.Code) + ": " + printable(f.Message())
	}
	return strings.Join(lines, "\n")
}

// reasonCodes returns the distinct codes of findings, separated by commas.
func reasonCodes(findings []guard.Finding) string {
	var out []string
	for _, f := range findings {
		if c := string(f.Code); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return strings.Join(out, ",")
}

// setPatch sets the JSON patch of a response.
func (r *response) setPatch(ops []patchOperation) error {
	data, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	t := admissionv1.PatchTypeJSONPatch
	r.Patch, r.PatchType = data, &t
	return nil
}

func writeResponse(w http.ResponseWriter, r *admissionv1.AdmissionRequest, resp response) error {
	resp.UID = r.UID
	data, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &resp.AdmissionResponse,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, err = w.Write(data)
	return err
}

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
func (r *response) recordVersion(replica string) {
	if r.view != nil {
		r.setAuditAnnotation(auditAnnotationEvaluatedOn, strings.TrimSpace(strconv.FormatUint(r.viewVersion(), 10)+" "+replica))
	}
}
