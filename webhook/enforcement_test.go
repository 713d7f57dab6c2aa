package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

func TestFailureIsAuditedLikeDenial(t *testing.T) {
	d := newTestServer(t, Options{Enforcement: guard.EnforceAudit, Guard: &guard.Guard{ReadLive: panicking}}, cluster)
	a := d.validated(t, create(t, homeless()))
	assert.Equal(t, &admissionv1.AdmissionResponse{UID: uid, Allowed: true, AuditAnnotations: map[string]string{"would-deny": "Panic", "evaluated-on": "0"}}, a)
}

func TestWouldBeDeniedIsLogged(t *testing.T) {
	for e, level := range map[guard.Enforcement]string{guard.EnforceDeny: `"level"=1`, guard.EnforceWarn: `"level"=0`, guard.EnforceAudit: `"level"=0`} {
		d := newTestServer(t, Options{Enforcement: e}, cluster, gatewayLimits)
		d.validated(t, create(t, routeLimits(100)))
		assert.Contains(t, d.log.String(), level+` "msg"="decision"`, e)
	}
}

// silent is asked about rights and does not know.
type silent struct{}

func (silent) MayOverride(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	return false, errors.New("etcdserver: leader changed")
}

func (silent) Check(api.Ref) string { return "check" }

func TestUnknownRightsAreRetried(t *testing.T) {
	p := &eventBuffer{}
	d := newTestServer(t, Options{Guard: &guard.Guard{Permissions: silent{}}, Events: p}, cluster, gatewayAuth)
	a := d.validated(t, remove(t, gatewayAuth))
	message := said(t, a)
	assert.Equal(t, int32(http.StatusTooManyRequests), a.Result.Code)
	assert.Equal(t, metav1.StatusReasonTooManyRequests, a.Result.Reason)
	assert.Equal(t, &metav1.StatusDetails{RetryAfterSeconds: 1}, a.Result.Details)
	assert.Contains(t, message, guard.ErrPermissions.Error())
	assert.Contains(t, message, "etcdserver: leader changed")
	assert.Contains(t, message, "; retry in 1s")
	assert.Empty(t, p.events, "nothing was decided")

	for e, warned := range map[guard.Enforcement]int{guard.EnforceWarn: 1, guard.EnforceAudit: 0} {
		d := newTestServer(t, Options{Enforcement: e, Guard: &guard.Guard{Permissions: silent{}}, Events: p}, cluster, gatewayAuth)
		a := d.validated(t, remove(t, gatewayAuth))
		require.True(t, a.Allowed, e)
		assert.Nil(t, a.Result)
		assert.Len(t, a.Warnings, warned, e)
		assert.Empty(t, p.events, e)
	}
}

func TestUnlistedKindIsRetried(t *testing.T) {
	renamed := update(t, route, strings.Replace(route, "name: toys,", "name: games,", 1))
	unlisted := func(e guard.Enforcement) *admissionv1.AdmissionResponse {
		d := newTestServer(t, Options{Enforcement: e}, cluster)
		v, _ := d.opts.Store.View()
		k := v.Kind(api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"})
		d.opts.Store.RemoveKind(k.Ref())
		d.opts.Store.AddKind(k)
		return d.validated(t, renamed)
	}
	a := unlisted(guard.EnforceDeny)
	assert.False(t, a.Allowed)
	assert.Equal(t, int32(http.StatusTooManyRequests), a.Result.Code)
	assert.Contains(t, a.Result.Message, "policies of kind AuthPolicy.kuadrant.io are not listed yet")

	a = unlisted(guard.EnforceWarn)
	assert.True(t, a.Allowed)
	assert.Len(t, a.Warnings, 1)
	assert.True(t, newTestServer(t, Options{}, cluster).validated(t, renamed).Allowed, "it is listed")
}

func TestOwnKindsHaveMetricLabels(t *testing.T) {
	d := newTestServer(t, Options{}, cluster)
	v, _ := d.opts.Store.View()
	for kind, want := range map[metav1.GroupVersionKind]string{
		{Group: "overrule.dev", Version: "v1alpha1", Kind: "PolicyProfile"}:              "PolicyProfile.overrule.dev",
		{Group: "overrule.dev", Version: "v1alpha1", Kind: "ClusterPolicyConstraint"}:    "ClusterPolicyConstraint.overrule.dev",
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: "CustomResourceDefinition.apiextensions.k8s.io",
		{Version: "v1", Kind: "Namespace"}:                                               "Namespace",
		{Group: "example.com", Version: "v1", Kind: "Anything"}:                          "other",
	} {
		assert.Equal(t, want, kindLabel(v, &admissionv1.AdmissionRequest{Kind: kind}), fmt.Sprint(kind))
	}
}
