package canary

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
)

// statusError is an error of the API server.
func statusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// denialError is the error of the API server for a denial by a webhook.
func denialError(hook, message string) error {
	return statusError(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "`+hook+`" denied the request: `+message)
}

// callError is its error for a failed call under failurePolicy Fail.
func callError(hook string) error {
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: failed to call webhook: Post \"https://x/validate?timeout=3s\": EOF", hook))
}

const invalid = "Invalid: PolicyProfile overrule-canary-abcde is invalid: targets: name the fields"

func TestCheckDenied(t *testing.T) {
	warned := []string{"something else", "would be denied: " + invalid}
	for name, c := range map[string]struct {
		does api.Action
		got  answer
		want verdict
	}{
		"denied": {api.Deny, answer{err: denialError(validating, invalid)}, passed("denied by validate.overrule.dev: %s", invalid)},
		"denied for another reason": {api.Deny, answer{err: denialError(validating, "Failed: overrule could not evaluate this write")},
			failed("denied by validate.overrule.dev, but not with reason Invalid: Failed: overrule could not evaluate this write")},
		"denied under warn": {api.Warn, answer{err: denialError(validating, invalid)},
			failed("denied by validate.overrule.dev, which is unexpected with --enforcement=warn; set --enforcement to the value that the server uses: %s", invalid)},
		"denied under audit": {api.Audit, answer{err: denialError(validating, invalid)},
			failed("denied by validate.overrule.dev, which is unexpected with --enforcement=audit; set --enforcement to the value that the server uses: %s", invalid)},
		"to be tried again": {api.Deny, answer{err: statusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, `admission webhook "validate.overrule.dev" denied the request: overrule is overloaded`)},
			verdict{outcome: Untried, overloaded: true, response: "validate.overrule.dev asked the client to retry: overrule is overloaded"}},
		"denied by another": {api.Deny, answer{err: denialError("others.example.com", "no")},
			untried("denied by webhook others.example.com, which does not belong to Overrule: no; exempt objects with the label overrule.dev/canary from it")},
		"denied by another one without a message": {api.Deny, answer{err: statusError(http.StatusBadRequest, "", `admission webhook "others.example.com" denied the request without explanation`)},
			untried("denied by webhook others.example.com, which does not belong to Overrule: without explanation; exempt objects with the label overrule.dev/canary from it")},
		"no call": {api.Deny, answer{err: callError(validating)},
			failed(`the API server cannot call validate.overrule.dev: failed to call webhook: Post "https://x/validate?timeout=3s": EOF`)},
		"no call of another": {api.Deny, answer{err: callError("others.example.com")},
			untried(`could not call webhook others.example.com, which does not belong to Overrule: failed to call webhook: Post "https://x/validate?timeout=3s": EOF; fix it, or exempt objects with the label overrule.dev/canary from it`)},
		"admitted":            {api.Deny, answer{}, verdict{outcome: Failed, response: "admitted without evaluation", notEvaluated: true}},
		"admitted under warn": {api.Warn, answer{warnings: warned[:1]}, verdict{outcome: Failed, response: "admitted without evaluation", notEvaluated: true}},
		"warned":              {api.Deny, answer{warnings: warned}, failed("admitted with a warning, which is unexpected unless the server runs with --enforcement=warn; set --enforcement to the value that the server uses: %s", warned[1])},
		"warned under warn":   {api.Warn, answer{warnings: warned}, passed("admitted with a warning: %s", warned[1])},
		"warned under audit":  {api.Audit, answer{warnings: warned}, failed("admitted with a warning, which is unexpected unless the server runs with --enforcement=warn; set --enforcement to the value that the server uses: %s", warned[1])},
		"warned of something else": {api.Warn, answer{warnings: []string{"would be denied: overrule is overloaded"}},
			failed("admitted with a warning, but not with reason Invalid: would be denied: overrule is overloaded")},
		"nothing under audit": {api.Audit, answer{}, passed("admitted, as expected with --enforcement=audit")},
	} {
		t.Run(name, func(t *testing.T) {
			c.got.write = write{resource: profiles}
			assert.Equal(t, c.want, checkDenied(c.does, c.got))
		})
	}
}

func TestCheckAdmitted(t *testing.T) {
	for name, c := range map[string]struct {
		got  answer
		want verdict
	}{
		"admitted":                      {answer{}, passed("admitted")},
		"with a warning of others":      {answer{warnings: []string{"deprecated"}}, passed("admitted")},
		"with a warning that it is not": {answer{warnings: []string{"would be denied: Invalid: x"}}, failed("admitted, but with a warning: would be denied: Invalid: x")},
		"denied":                        {answer{err: denialError(validating, "Failed: x")}, failed("denied by validate.overrule.dev: Failed: x")},
		"not mutated":                   {answer{err: callError(mutating)}, failed(`the API server cannot call mutate.overrule.dev: failed to call webhook: Post "https://x/validate?timeout=3s": EOF`)},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, checkAdmitted(api.Deny, c.got))
		})
	}
}

func TestCheckMutated(t *testing.T) {
	route := func(annotations map[string]string) answer {
		o := &unstructured.Unstructured{}
		o.SetAnnotations(annotations)
		return answer{object: o, write: write{namespace: "app"}}
	}
	assert.Equal(t, passed("admitted, and mutated by mutate.overrule.dev"), checkMutated(api.Deny, route(nil)))
	assert.Equal(t, passed("admitted, and mutated by mutate.overrule.dev"), checkMutated(api.Audit, route(map[string]string{"a": "b"})))
	left := checkMutated(api.Deny, route(map[string]string{api.AnnotationEffectivePolicy: staleAnnotation}))
	assert.Equal(t, Failed, left.outcome)
	assert.Contains(t, left.response, "not mutated by mutate.overrule.dev: ")
	assert.Contains(t, left.response, "namespace app is exempt if Overrule runs in it")
	assert.Equal(t, Failed, checkMutated(api.Deny, answer{err: callError(mutating)}).outcome)
}

func TestAPIErrorsAreUntried(t *testing.T) {
	noNamespace := statusError(http.StatusNotFound, metav1.StatusReasonNotFound, `namespaces "app" not found`)
	noNamespace.(*apierrors.StatusError).ErrStatus.Details = &metav1.StatusDetails{Kind: "namespaces", Name: "app"} //nolint:errorlint,forcetypeassert // made one line above
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no right": {
			statusError(http.StatusForbidden, metav1.StatusReasonForbidden, `httproutes.gateway.networking.k8s.io is forbidden: User "u" cannot create resource "httproutes" in API group "gateway.networking.k8s.io" in the namespace "app"`),
			"u is not allowed to create httproutes.gateway.networking.k8s.io; check: kubectl auth can-i create httproutes.gateway.networking.k8s.io -n app --as=u",
		},
		"forbidden by a policy": {
			statusError(http.StatusForbidden, metav1.StatusReasonForbidden, `httproutes.gateway.networking.k8s.io "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`),
			`rejected by the API server: httproutes.gateway.networking.k8s.io "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		},
		"no credentials": {statusError(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"), "not authenticated: Unauthorized; check the credentials in the kubeconfig"},
		"no namespace":   {noNamespace, "namespace app not found: set --canary-namespace to an existing namespace"},
		"no definition":  {statusError(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"), "the API server does not serve httproutes.gateway.networking.k8s.io in version v1: install its CustomResourceDefinition"},
		"another schema": {statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "spec.x: Required value"), "rejected by the CustomResourceDefinition of httproutes.gateway.networking.k8s.io; install the one of this version of Overrule: spec.x: Required value"},
		"no answer":      {fmt.Errorf("Post: %w", context.DeadlineExceeded), "timeout waiting for the API server: Post: context deadline exceeded"},
		"a busy server":  {statusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests"), "rejected by the API server: too many requests"},
		"no connection":  {errors.New("dial tcp: connection refused"), "rejected by the API server: dial tcp: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkAdmitted(api.Deny, answer{err: c.err, write: write{resource: httpRoutes, namespace: "app"}})
			assert.Equal(t, untried("%s", c.want), got)
		})
	}
}
