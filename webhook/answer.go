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
type answer struct {
	admissionv1.AdmissionResponse
	// reason is the code of the first denial, "" if there is none; message is
	// all that speaks against the write, even where it is allowed.
	reason, message string
	// again tells that nothing was decided: the client shall try again.
	again bool
	// about is the object of the write, where it could be read.
	about api.Ref
	// judged tells that the guard judged the write, which changes so many paths.
	judged bool
	paths  int
	// on is the view that it was judged on, nil if nobody judged.
	on *snapshot.View
}

// The reasons of denials that no guard gave.
const (
	reasonFailed = "Failed"
	reasonPanic  = "Panic"
)

func allow() answer {
	return answer{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

// deny answers no, with the code 403 that shows the message on a terminal.
func deny(reason, message string) answer {
	return answer{
		reason: reason, message: message,
		AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden,
			Reason: metav1.StatusReasonForbidden, Message: message,
		}},
	}
}

const overload = "overrule is judging as many writes as it can; try again in a second"

// later asks the client to come again; kubectl does so by itself.
func later(reason, message string) answer {
	a := deny(reason, message)
	comeAgain(&a)
	return a
}

// comeAgain makes a denial one that a client tries again after a second.
func comeAgain(a *answer) {
	a.again = true
	if a.Result == nil {
		return // nothing is denied
	}
	a.Result.Code, a.Result.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	a.Result.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
}

// of answers what the guard says.
func of(j *guard.Decision, e guard.Enforcement) answer {
	a := allow()
	told := j.Warnings
	if j.Denied() {
		a = deny(string(j.Denials[0].Code), message(j.Denials)).under(e, codes(j.Denials))
		if !e.Denies() {
			told = append(wouldDeny(j.Denials), told...)
		}
	}
	a.about, a.judged, a.paths = j.Change.Object().Ref(), true, j.Changes.Paths
	if e != guard.EnforceAudit {
		a.Warnings = warnings(told)
	}
	if len(j.Audits) > 0 {
		a.annotate("audit", message(j.Audits))
	}
	return a
}

// under returns a denial as an enforcement wants it, with its codes in the
// audit log. Where it denies nothing, saying so on the terminal is the caller's.
func (a answer) under(e guard.Enforcement, codes string) answer {
	key := "denied"
	if e == guard.EnforceAudit {
		key = "would-deny"
	}
	a.annotate(key, codes)
	if !e.Denies() {
		a.Allowed, a.Result = true, nil
	}
	return a
}

// annotate adds to what the audit log says of the write.
func (a *answer) annotate(key, value string) {
	if a.AuditAnnotations == nil {
		a.AuditAnnotations = make(map[string]string)
	}
	a.AuditAnnotations[key] = value
}

// wouldDeny marks denials that are only told.
func wouldDeny(denials []guard.Finding) []guard.Finding {
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
func message(findings []guard.Finding) string {
	findings = guard.OmitRepeated(findings)
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = string(f.Code) + ": " + printable(f.Message())
	}
	return strings.Join(lines, "\n")
}

func codes(findings []guard.Finding) string {
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
func (a *answer) patch(ops []operation) error {
	data, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	t := admissionv1.PatchTypeJSONPatch
	a.Patch, a.PatchType = data, &t
	return nil
}

func writeAnswer(w http.ResponseWriter, r *admissionv1.AdmissionRequest, a answer) error {
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
