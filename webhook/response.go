package webhook

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// answer is a review's response, with what metrics, log and Events say of it.
type response struct {
	admissionv1.AdmissionResponse
	// reason is the code of the first denial, "" if there is none; message is
	// all that speaks against the write, even where it is allowed.
	reason, message string
	// again tells that nothing was decided: the client shall try again.
	retry bool
	// about is the object of the write, where it could be read.
	object api.Ref
	// judged tells that the guard judged the write, which changes so many paths.
	evaluated bool
	paths  int
	// on is the view that it was judged on, nil if nobody judged.
	view *snapshot.View
}

// The reasons of denials that no guard gave.
const (
	reasonFailed = "Failed"
	reasonPanic  = "Panic"
)

func allow() response {
	return response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

// deny answers no, with the code 403 that shows the message on a terminal.
func deny(reason, message string) response {
	return response{
		reason: reason, message: message,
		AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden,
			Reason: metav1.StatusReasonForbidden, Message: message,
		}},
	}
}

const overloadMessage = "overrule is judging as many writes as it can; try again in a second"

// later asks the client to come again; kubectl does so by itself.
func denyWithRetry(reason, message string) response {
	a := deny(reason, message)
	retryLater(&a)
	return a
}

// comeAgain makes a denial one that a client tries again after a second.
func retryLater(a *response) {
	a.retry = true
	if a.Result == nil {
		return // nothing is denied
	}
	a.Result.Code, a.Result.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	a.Result.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
}

// of answers what the guard says.
func fromDecision(j *guard.Decision, e guard.Enforcement) response {
	a := allow()
	told := j.Warnings
	if j.Denied() {
		a = deny(string(j.Denials[0].Code), denialMessage(j.Denials)).applyEnforcement(e, reasonCodes(j.Denials))
		if !e.Denies() {
			told = append(asWouldDeny(j.Denials), told...)
		}
	}
	a.object, a.evaluated, a.paths = j.Change.Object().Ref(), true, j.Changes.Paths
	if e != guard.EnforceAudit {
		a.Warnings = warnings(told)
	}
	if len(j.Audits) > 0 {
		a.setAuditAnnotation("audit", denialMessage(j.Audits))
	}
	return a
}

// under returns a denial as an enforcement wants it, with its codes in the
// audit log. Where it denies nothing, saying so on the terminal is the caller's.
func (a response) applyEnforcement(e guard.Enforcement, codes string) response {
	key := "denied"
	if e == guard.EnforceAudit {
		key = "would-deny"
	}
	a.setAuditAnnotation(key, codes)
	if !e.Denies() {
		a.Allowed, a.Result = true, nil
	}
	return a
}

// annotate adds to what the audit log says of the write.
func (a *response) setAuditAnnotation(key, value string) {
	if a.AuditAnnotations == nil {
		a.AuditAnnotations = make(map[string]string)
	}
	a.AuditAnnotations[key] = value
}

// wouldDeny marks denials that are only told.
func asWouldDeny(denials []guard.Finding) []guard.Finding {
	out := make([]guard.Finding, len(denials))
	for i, f := range denials {
		mark := "would be denied: " + string(f.Code) + ": "
		f.What = mark + f.What
		if f.Short != "" {
			f.Short = mark + f.Short
		}
		out[i] = f
	}
	return out
}

// message says everything: one finding to a line, each with its reason. What
// policies say in their conditions is no command to a terminal.
func denialMessage(findings []guard.Finding) string {
	findings = guard.OmitRepeated(findings)
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = string(f.Code) + ": " + printable(f.Message())
	}
	return strings.Join(lines, "\n")
}

func reasonCodes(findings []guard.Finding) string {
	seen := make(map[string]bool)
	var out []string
	for _, f := range findings {
		if c := string(f.Code); !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return strings.Join(out, ",")
}

// patch adds a JSON patch to an answer.
func (a *response) setPatch(ops []patchOperation) error {
	data, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	t := admissionv1.PatchTypeJSONPatch
	a.Patch, a.PatchType = data, &t
	return nil
}

func writeResponse(w http.ResponseWriter, r *admissionv1.AdmissionRequest, a response) error {
	a.UID = r.UID
	data, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: &a.AdmissionResponse,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, err = w.Write(data)
	return err
}
