package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/tables"
)

func raw(json string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(json)} }

func kindAuthPolicy() metav1.GroupVersionKind {
	return metav1.GroupVersionKind{Group: "kuadrant.io", Version: "v1", Kind: "AuthPolicy"}
}

func TestUnreadableWriteIsDenied(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Request admissionv1.AdmissionRequest
		Says    string
	}](t, "testdata/tables/unreadable.yaml") {
		t.Run(name, func(t *testing.T) {
			c.Request.UID = uid
			d := newTestServer(t, Options{}, cluster)
			a := d.validated(t, &c.Request)
			assert.Contains(t, said(t, a), c.Says)
			assert.Equal(t, int32(403), a.Result.Code)
			assert.Equal(t, metav1.StatusReasonForbidden, a.Result.Reason)
			assert.Equal(t, &admissionv1.AdmissionResponse{UID: uid, Allowed: true}, d.mutated(t, &c.Request), "mutating leaves it to validating")

			d = newTestServer(t, Options{Enforcement: guard.EnforceWarn}, cluster)
			a = d.validated(t, &c.Request)
			assert.True(t, a.Allowed)
			assert.Len(t, a.Warnings, 1)
		})
	}
}

func TestIgnoredWriteIsAllowed(t *testing.T) {
	for name, r := range tables.Read[map[string]admissionv1.AdmissionRequest](t, "testdata/tables/ignored.yaml") {
		t.Run(name, func(t *testing.T) {
			r.UID = uid
			d := newTestServer(t, Options{}, cluster, gatewayAuth)
			want := &admissionv1.AdmissionResponse{UID: uid, Allowed: true}
			assert.Equal(t, want, d.mutated(t, &r))
			want.AuditAnnotations = map[string]string{"evaluated-on": "0"}
			assert.Equal(t, want, d.validated(t, &r))
		})
	}
}

// A scale says nothing of the policy that its number is written to.
func TestScaleOfPolicyIsDenied(t *testing.T) {
	scale := raw(`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"p","namespace":"app"},"spec":{"replicas":5}}`)
	a := newTestServer(t, Options{}, cluster).validated(t, &admissionv1.AdmissionRequest{
		UID: uid, Kind: metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"},
		Resource:    metav1.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "authpolicies"},
		SubResource: "scale", Namespace: "app", Name: "p", Operation: admissionv1.Update, Object: scale, OldObject: scale,
	})
	assert.False(t, a.Allowed)
	assert.Equal(t, `NotRead: scale of authpolicies/p in namespace "app": a write of the scale subresource can change fields of the policy that it does not contain; update the policy instead`, a.Result.Message)
}

func TestDeleteIsEvaluatedByOldObject(t *testing.T) {
	d := newTestServer(t, Options{}, cluster) // the policy has not reached the cache yet
	want := said(t, d.validated(t, remove(t, gatewayAuth)))
	assertNames(t, want, []string{"OverrideRemoved: ", "rules.authentication.sso", "AuthPolicy infra/gw-auth", "2 paths"})
	d = newTestServer(t, Options{}, cluster, gatewayAuth)
	assert.Equal(t, want, said(t, d.validated(t, remove(t, gatewayAuth))))

	collection := remove(t, gatewayAuth)
	collection.Name = "" // as deletecollection sends it
	assert.Equal(t, want, said(t, d.validated(t, collection)))

	withNull := remove(t, gatewayAuth)
	withNull.Object = raw("null")
	assert.Equal(t, want, said(t, d.validated(t, withNull)))
}

func TestGenerateName(t *testing.T) {
	const generated = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: app, generateName: limits-}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits: {login: {rates: [{limit: 100, window: 10s}]}}
`
	d := newTestServer(t, Options{}, cluster, gatewayLimits)
	assert.NotEmpty(t, d.mutated(t, create(t, generated)).Patch)
	assert.Contains(t, said(t, d.validated(t, create(t, generated))), "ConstraintViolated: limits.login: ")

	d = newTestServer(t, Options{}, cluster, gatewayAuth)
	const unnamed = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, generateName: r-}
spec: {parentRefs: [{namespace: infra, name: edge}]}
`
	assert.NotEmpty(t, d.mutated(t, create(t, unnamed)).Patch)
	a := d.validated(t, create(t, unnamed))
	assert.True(t, a.Allowed)
	assert.Equal(t, []string{"this gets authentication of AuthPolicy infra/gw-auth"}, a.Warnings)
}
