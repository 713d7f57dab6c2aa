package webhook

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/guard"
)

// answer is a review's response, with what the metrics and the log say of it.
type answer struct {
	admissionv1.AdmissionResponse
	// reason is the code of the first denial, "" if there is none.
	reason string
}

func allow() answer {
	return answer{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

// deny answers no, with the code 403 that shows the message on a terminal.
func deny(reason, message string) answer {
	return answer{
		reason: reason,
		AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden,
			Reason: metav1.StatusReasonForbidden, Message: message,
		}},
	}
}

const overload = "overrule is judging as many writes as it can; try again in a second"

// overloaded asks the client to come again; kubectl does so by itself.
func overloaded() answer {
	a := deny("Overloaded", overload)
	a.Result.Code, a.Result.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	a.Result.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return a
}

// of answers what the guard says.
func of(j *guard.Judgement, e guard.Enforcement) answer {
	a, told := allow(), j.Warnings
	if j.Denied() {
		a = deny(string(j.Denials[0].Code), message(j.Denials))
		a.AuditAnnotations = map[string]string{"denied": codes(j.Denials)}
		if e == guard.EnforceWarn {
			a.Allowed, a.Result = true, nil
			told = append(wouldDeny(j.Denials), told...)
		}
	}
	a.Warnings = warnings(told)
	if len(j.Audits) > 0 {
		if a.AuditAnnotations == nil {
			a.AuditAnnotations = make(map[string]string)
		}
		a.AuditAnnotations["audit"] = message(j.Audits)
	}
	return a
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
