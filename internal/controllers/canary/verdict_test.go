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

// said is an answer of the API server's with that code, reason and message.
func said(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// denies is what an API server makes of a webhook's denial.
func denies(hook, message string) error {
	return said(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "`+hook+`" denied the request: `+message)
}

// cannotCall is what it makes of a call that fails, under failurePolicy Fail.
func cannotCall(hook string) error {
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: failed to call webhook: Post \"https://x/validate?timeout=3s\": EOF", hook))
}

const invalid = "Invalid: PolicyProfile overrule-canary-abcde is invalid: targets: name the fields"

func TestWhatAnAnswerMeansForAWriteThatMustBeDenied(t *testing.T) {
	warned := []string{"something else", "would be denied: " + invalid}
	for name, c := range map[string]struct {
		does api.Action
		got  answer
		want verdict
	}{
		"denied": {api.Deny, answer{err: denies(validating, invalid)}, passed("denied by validate.overrule.dev: %s", invalid)},
		"denied for another reason": {api.Deny, answer{err: denies(validating, "Failed: overrule could not judge this write")},
			failed("validate.overrule.dev denied it, and not as Invalid: Failed: overrule could not judge this write")},
		"denied under warn": {api.Warn, answer{err: denies(validating, invalid)},
			failed("validate.overrule.dev denied it, which it should not with --enforcement=warn; say with --enforcement how the server runs: %s", invalid)},
		"denied under audit": {api.Audit, answer{err: denies(validating, invalid)},
			failed("validate.overrule.dev denied it, which it should not with --enforcement=audit; say with --enforcement how the server runs: %s", invalid)},
		"to be tried again": {api.Deny, answer{err: said(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, `admission webhook "validate.overrule.dev" denied the request: overrule is judging as many writes as it can`)},
			verdict{outcome: Untried, busy: true, came: "validate.overrule.dev answered that it is to be tried again: overrule is judging as many writes as it can"}},
		"denied by another": {api.Deny, answer{err: denies("others.example.com", "no")},
			untried("the webhook others.example.com, which is not Overrule's, denied it: no; exempt what has the label overrule.dev/canary from it")},
		"denied by another one without a word": {api.Deny, answer{err: said(http.StatusBadRequest, "", `admission webhook "others.example.com" denied the request without explanation`)},
			untried("the webhook others.example.com, which is not Overrule's, denied it: without explanation; exempt what has the label overrule.dev/canary from it")},
		"no call": {api.Deny, answer{err: cannotCall(validating)},
			failed(`the API server cannot call validate.overrule.dev: failed to call webhook: Post "https://x/validate?timeout=3s": EOF`)},
		"no call of another": {api.Deny, answer{err: cannotCall("others.example.com")},
			untried(`the webhook others.example.com, which is not Overrule's, could not be called: failed to call webhook: Post "https://x/validate?timeout=3s": EOF; mend it, or exempt what has the label overrule.dev/canary from it`)},
		"admitted":            {api.Deny, answer{}, verdict{outcome: Failed, came: "admitted, and not judged", unjudged: true}},
		"admitted under warn": {api.Warn, answer{warnings: warned[:1]}, verdict{outcome: Failed, came: "admitted, and not judged", unjudged: true}},
		"warned":              {api.Deny, answer{warnings: warned}, failed("admitted with a warning, which shows --enforcement=warn; say with --enforcement how the server runs: %s", warned[1])},
		"warned under warn":   {api.Warn, answer{warnings: warned}, passed("admitted with a warning: %s", warned[1])},
		"warned under audit":  {api.Audit, answer{warnings: warned}, failed("admitted with a warning, which shows --enforcement=warn; say with --enforcement how the server runs: %s", warned[1])},
		"warned of something else": {api.Warn, answer{warnings: []string{"would be denied: overrule is judging as many writes as it can"}},
			failed("admitted with a warning, and not of Invalid: would be denied: overrule is judging as many writes as it can")},
		"nothing under audit": {api.Audit, answer{}, passed("admitted, as it should be with --enforcement=audit")},
	} {
		t.Run(name, func(t *testing.T) {
			c.got.write = write{resource: profiles}
			assert.Equal(t, c.want, mustBeDenied(c.does, c.got))
		})
	}
}

func TestWhatAnAnswerMeansForAWriteThatMustPass(t *testing.T) {
	for name, c := range map[string]struct {
		got  answer
		want verdict
	}{
		"admitted":                      {answer{}, passed("admitted")},
		"with a warning of others":      {answer{warnings: []string{"deprecated"}}, passed("admitted")},
		"with a warning that it is not": {answer{warnings: []string{"would be denied: Invalid: x"}}, failed("admitted, but with a warning: would be denied: Invalid: x")},
		"denied":                        {answer{err: denies(validating, "Failed: x")}, failed("denied by validate.overrule.dev: Failed: x")},
		"not mutated":                   {answer{err: cannotCall(mutating)}, failed(`the API server cannot call mutate.overrule.dev: failed to call webhook: Post "https://x/validate?timeout=3s": EOF`)},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, mustPass(api.Deny, c.got))
		})
	}
}

func TestARouteMustBeMended(t *testing.T) {
	route := func(annotations map[string]string) answer {
		o := &unstructured.Unstructured{}
		o.SetAnnotations(annotations)
		return answer{object: o, write: write{namespace: "app"}}
	}
	assert.Equal(t, passed("admitted, and mended by mutate.overrule.dev"), mustBeMended(api.Deny, route(nil)))
	assert.Equal(t, passed("admitted, and mended by mutate.overrule.dev"), mustBeMended(api.Audit, route(map[string]string{"a": "b"})))
	left := mustBeMended(api.Deny, route(map[string]string{api.AnnotationEffectivePolicy: stale}))
	assert.Equal(t, Failed, left.outcome)
	assert.Contains(t, left.came, "not mended by mutate.overrule.dev: ")
	assert.Contains(t, left.came, "namespace app is exempt if it is Overrule's own")
	assert.Equal(t, Failed, mustBeMended(api.Deny, answer{err: cannotCall(mutating)}).outcome)
}

func TestWhatTheAPIServerDoesNotTakeIsUntried(t *testing.T) {
	noNamespace := said(http.StatusNotFound, metav1.StatusReasonNotFound, `namespaces "app" not found`)
	noNamespace.(*apierrors.StatusError).ErrStatus.Details = &metav1.StatusDetails{Kind: "namespaces", Name: "app"} //nolint:errorlint,forcetypeassert // made one line above
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no right": {
			said(http.StatusForbidden, metav1.StatusReasonForbidden, `httproutes.gateway.networking.k8s.io is forbidden: User "u" cannot create resource "httproutes" in API group "gateway.networking.k8s.io" in the namespace "app"`),
			"u may not create httproutes.gateway.networking.k8s.io; look at: kubectl auth can-i create httproutes.gateway.networking.k8s.io -n app --as=u",
		},
		"forbidden by a policy": {
			said(http.StatusForbidden, metav1.StatusReasonForbidden, `httproutes.gateway.networking.k8s.io "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`),
			`the API server did not take it: httproutes.gateway.networking.k8s.io "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		},
		"nobody":         {said(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"), "the API server does not know who asks: Unauthorized; check the kubeconfig's credentials"},
		"no namespace":   {noNamespace, "there is no namespace app: name another one with --canary-namespace"},
		"no definition":  {said(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"), "the API server does not serve httproutes.gateway.networking.k8s.io in version v1: install its CustomResourceDefinition"},
		"another schema": {said(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "spec.x: Required value"), "the CustomResourceDefinition of httproutes.gateway.networking.k8s.io refuses it before Overrule is asked; install the one of this version of Overrule: spec.x: Required value"},
		"no answer":      {fmt.Errorf("Post: %w", context.DeadlineExceeded), "the API server did not answer in time: Post: context deadline exceeded"},
		"a busy server":  {said(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests"), "the API server did not take it: too many requests"},
		"no connection":  {errors.New("dial tcp: connection refused"), "the API server did not take it: dial tcp: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustPass(api.Deny, answer{err: c.err, write: write{resource: httpRoutes, namespace: "app"}})
			assert.Equal(t, untried("%s", c.want), got)
		})
	}
}
