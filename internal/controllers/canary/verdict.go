package canary

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Webhooks that the writes of a canary pass through.
const (
	validating = "validate.overrule.dev"
	mutating   = "mutate.overrule.dev"
)

// verdict is the evaluation of an answer.
type verdict struct {
	outcome  Outcome
	response string
	// notEvaluated is true if the write was admitted as if no webhook existed.
	notEvaluated bool
	overloaded   bool
}

func passed(format string, args ...any) verdict {
	return verdict{outcome: Passed, response: fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) verdict {
	return verdict{outcome: Failed, response: fmt.Sprintf(format, args...)}
}

func untried(format string, args ...any) verdict {
	return verdict{outcome: Untried, response: fmt.Sprintf(format, args...)}
}

// The API server reports the webhook that denied a request, or failed, only in the
// message.
var (
	deniedBy  = regexp.MustCompile(`(?s)^admission webhook "([^"]+)" denied the request(?:: | )(.*)$`)
	failureOf = regexp.MustCompile(`(?s)failed calling webhook "([^"]+)"(?:: |; )(.*)$`)
	forbidden = regexp.MustCompile(`(?s)^\S+ is forbidden: User "([^"]*)" cannot create resource`)
)

const (
	reasonPrefix    = string(api.ReasonInvalid) + ": " // prefix of a denial by Overrule
	wouldDeny       = "would be denied: "
	enforcementHint = "set --enforcement to the value that the server uses"
	exemptHint      = "exempt objects with the label " + api.LabelCanary + " from it"
)

// checkDenied evaluates the answer to a write that Overrule must deny.
func checkDenied(enforcement api.Action, a answer) verdict {
	hook, message, denied := parseDenial(a.err)
	warned := findWarning(a.warnings)
	switch {
	case denied && hook == validating && !apierrors.IsTooManyRequests(a.err):
		if !strings.HasPrefix(message, reasonPrefix) {
			return failed("denied by %s, but not with reason %s: %s", validating, api.ReasonInvalid, message)
		}
		if enforcement != api.Deny {
			return failed("denied by %s, which is unexpected with --enforcement=%s; %s: %s", validating, strings.ToLower(string(enforcement)), enforcementHint, message)
		}
		return passed("denied by %s: %s", validating, message)
	case a.err != nil:
		return errorVerdict(a)
	case warned != "" && !strings.HasPrefix(warned, wouldDeny+reasonPrefix):
		return failed("admitted with a warning, but not with reason %s: %s", api.ReasonInvalid, warned)
	case warned != "" && enforcement == api.Warn:
		return passed("admitted with a warning: %s", warned)
	case warned != "":
		return failed("admitted with a warning, which is unexpected unless the server runs with --enforcement=warn; %s: %s", enforcementHint, warned)
	case enforcement == api.Audit:
		return passed("admitted, as expected with --enforcement=audit")
	}
	v := failed("admitted without evaluation")
	v.notEvaluated = true
	return v
}

// checkAdmitted evaluates the answer to a valid write.
func checkAdmitted(_ api.Action, a answer) verdict {
	if a.err != nil {
		return errorVerdict(a)
	}
	if w := findWarning(a.warnings); w != "" {
		return failed("admitted, but with a warning: %s", w)
	}
	return passed("admitted")
}

// checkMutated evaluates the answer to a route with an annotation that the mutating
// webhook removes.
func checkMutated(enforcement api.Action, a answer) verdict {
	v := checkAdmitted(enforcement, a)
	if v.outcome != Passed || a.object.GetAnnotations()[api.AnnotationEffectivePolicy] != staleAnnotation {
		if v.outcome == Passed {
			v.response += ", and mutated by " + mutating
		}
		return v
	}
	return failed("admitted, but not mutated by %s: the webhook is not called for it, or its calls fail and failurePolicy is Ignore, "+
		"or they time out; namespace %s is exempt if Overrule runs in it", mutating, a.write.namespace)
}

// findWarning returns the warning about a write that would be denied, "" if there is
// none.
func findWarning(all []string) string {
	for _, w := range all {
		if strings.HasPrefix(w, wouldDeny) {
			return w
		}
	}
	return ""
}

// parseDenial returns which webhook denied a write, and its message.
func parseDenial(err error) (hook, message string, ok bool) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return "", "", false
	}
	m := deniedBy.FindStringSubmatch(status.Status().Message)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// errorVerdict evaluates an error other than the expected denial.
func errorVerdict(a answer) verdict {
	if hook, message, ok := parseDenial(a.err); ok {
		return deniedVerdict(hook, message, apierrors.IsTooManyRequests(a.err))
	}
	if m := failureOf.FindStringSubmatch(a.err.Error()); m != nil && apierrors.IsInternalError(a.err) {
		if !ours(m[1]) {
			return untried("could not call webhook %s, which does not belong to Overrule: %s; fix it, or %s", m[1], m[2], exemptHint)
		}
		return failed("the API server cannot call %s: %s", m[1], m[2])
	}
	return apiErrorVerdict(a)
}

func ours(hook string) bool { return hook == validating || hook == mutating }

func deniedVerdict(hook, message string, retry bool) verdict {
	switch {
	case !ours(hook):
		return untried("denied by webhook %s, which does not belong to Overrule: %s; %s", hook, message, exemptHint)
	case retry:
		v := untried("%s asked the client to retry: %s", hook, message)
		v.overloaded = true
		return v
	default:
		return failed("denied by %s: %s", hook, message)
	}
}

// apiErrorVerdict evaluates an error of the API server itself.
func apiErrorVerdict(a answer) verdict {
	gr := a.write.resource.GroupResource()
	var status apierrors.APIStatus
	details := ""
	if errors.As(a.err, &status) && status.Status().Details != nil {
		details = status.Status().Details.Kind
	}
	switch m := forbidden.FindStringSubmatch(a.err.Error()); {
	case apierrors.IsForbidden(a.err) && m != nil:
		return untried("%s is not allowed to create %s; check: kubectl auth can-i create %s%s --as=%s", m[1], gr, gr, inNamespace(a.write.namespace), m[1])
	case apierrors.IsUnauthorized(a.err):
		return untried("not authenticated: %v; check the credentials in the kubeconfig", a.err)
	case apierrors.IsNotFound(a.err) && details == "namespaces":
		return untried("namespace %s not found: set --canary-namespace to an existing namespace", a.write.namespace)
	case apierrors.IsNotFound(a.err):
		return untried("the API server does not serve %s in version %s: install its CustomResourceDefinition", gr, a.write.resource.Version)
	case apierrors.IsInvalid(a.err) || apierrors.IsBadRequest(a.err):
		return untried("rejected by the CustomResourceDefinition of %s; install the one of this version of Overrule: %v", gr, a.err)
	case errors.Is(a.err, context.DeadlineExceeded):
		return untried("timeout waiting for the API server: %v", a.err)
	default:
		return untried("rejected by the API server: %v", a.err)
	}
}

func inNamespace(name string) string {
	if name == "" {
		return ""
	}
	return " -n " + name
}
