package webhook

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
)

// withInFlight is a server that tracks admitted writes.
func withInFlight(t *testing.T, o Options, manifests ...string) *testServer {
	t.Helper()
	o.Store = snapshot.New()
	o.InFlight = inflight.New(o.Store, inflight.Options{MaxWait: -1})
	return newTestServer(t, o, manifests...)
}

func TestConflictWithWriteInFlightIsRetried(t *testing.T) {
	p := &eventBuffer{}
	d := withInFlight(t, Options{Events: p}, cluster)
	limit := create(t, strings.Replace(gatewayLimits, "name: gw-limits,", "name: gw-limits, uid: u1,", 1))
	assert.True(t, d.validated(t, limit).Allowed)
	ref := api.Ref{Group: "kuadrant.io", Kind: "RateLimitPolicy", Namespace: "infra", Name: "gw-limits"}

	a := d.validated(t, create(t, routeLimits(100)))
	assert.Contains(t, said(t, a), " (together with the pending write of RateLimitPolicy infra/gw-limits, "+
		"not yet in the cache; retry in 1s)")
	assert.Equal(t, "ConstraintViolated", a.AuditAnnotations["denied"])
	a.Result.Message = ""
	assert.Equal(t, &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}, a.Result)

	assert.Empty(t, p.events, "nothing was decided")

	addObjects(t, d.opts.Store, gatewayLimits)
	d.opts.Store.Observe(snapshot.Observation{Ref: ref, UID: "u0", Version: "7"})
	assert.Equal(t, 1, d.opts.InFlight.Len(), "that is another object of this name")
	d.opts.Store.Observe(snapshot.Observation{Ref: ref, UID: "u1", Version: "8"})
	assert.Zero(t, d.opts.InFlight.Len())
	a = d.validated(t, create(t, routeLimits(100)))
	assert.NotContains(t, said(t, a), "together")
	assert.Equal(t, int32(http.StatusForbidden), a.Result.Code)
	assert.Len(t, p.events, 1)
}

func TestRetryLaterKeepsAllowed(t *testing.T) {
	a := allow()
	a.retryLater()
	assert.True(t, a.Allowed)
	assert.Nil(t, a.Result)
	assert.True(t, a.retry, "nothing was decided")
}

func TestDryRunIsNotTracked(t *testing.T) {
	d := withInFlight(t, Options{}, cluster)
	dry := create(t, gatewayLimits)
	dry.DryRun = new(true)
	assert.True(t, d.validated(t, dry).Allowed)
	assert.Zero(t, d.opts.InFlight.Len())
	assert.True(t, d.validated(t, create(t, routeLimits(100))).Allowed)
}

func TestInFlightBytesAreLimited(t *testing.T) {
	d := withInFlight(t, Options{}, cluster)
	d.opts.InFlight.Options.MaxBytes = 100
	assert.True(t, d.validated(t, create(t, strings.Replace(gatewayLimits, "name: gw-limits,", "name: gw-limits, uid: u1,", 1))).Allowed)
	a := d.validated(t, update(t, annotated(route, "a", "b"), route))
	assert.Contains(t, said(t, a), "TooMuch: too many admitted writes not yet observed, by this user or in namespace app")
	assert.Equal(t, int32(http.StatusTooManyRequests), a.Result.Code)
}

func TestObjectTooLargeForEtcdIsDenied(t *testing.T) {
	padded := func(n int) string { return annotated(route, "pad", strings.Repeat("x", n)) }
	large := create(t, padded(2000))
	d := withInFlight(t, Options{MaxObject: int64(len(large.Object.Raw)) - 1}, cluster)
	a := d.validated(t, large)
	assert.Contains(t, said(t, a), "TooMuch: HTTPRoute app/toystore is too large: ")
	assert.Contains(t, said(t, a), "the limit is ")
	assert.Equal(t, int32(http.StatusForbidden), a.Result.Code)
	assert.Zero(t, d.opts.InFlight.Len())

	assert.False(t, d.validated(t, update(t, route, padded(2001))).Allowed)
	assert.True(t, d.validated(t, update(t, padded(2001), padded(2000))).Allowed, "it was stored, so it can be made smaller")
	status := update(t, route, padded(2001))
	status.SubResource = "status"
	assert.True(t, d.validated(t, status).Allowed)
	assert.True(t, d.validated(t, remove(t, padded(2001))).Allowed)
	d.opts.MaxObject++
	assert.True(t, d.validated(t, large).Allowed)
	service := create(t, "apiVersion: v1\nkind: Service\nmetadata: {namespace: app, name: s, annotations: {pad: "+strings.Repeat("x", 4000)+"}}")
	assert.True(t, d.validated(t, service).Allowed, "it is not stored as JSON")
	d.opts.MaxObject, d.opts.Enforcement = 100, guard.EnforceWarn
	assert.True(t, d.validated(t, large).Allowed)
}

func TestRemovesLastFinalizer(t *testing.T) {
	going := func(finalizers string) string {
		return strings.Replace(route, "name: toystore", "name: toystore, deletionTimestamp: \"2026-03-01T12:00:00Z\", finalizers: "+finalizers, 1)
	}
	for name, c := range map[string]struct {
		request *admissionv1.AdmissionRequest
		want    bool
	}{
		"it loses its last finalizer": {update(t, going("[a/b]"), going("[]")), true},
		"it loses all finalizers":     {update(t, going("[a/b, c/d]"), going("null")), true},
		"it loses one of two":         {update(t, going("[a/b, c/d]"), going("[a/b]")), false},
		"it had none":                 {update(t, going("[]"), going("[]")), false},
		"it is not being deleted":     {update(t, strings.Replace(route, "name: toystore", "name: toystore, finalizers: [a/b]", 1), route), false},
		"it is created":               {create(t, route), false},
	} {
		assert.Equal(t, c.want, removesLastFinalizer(c.request), name)
	}
	assert.True(t, hasGeneratedName(create(t, strings.Replace(route, "name: toystore", "name: toystore-x, generateName: toystore-", 1))))
	assert.False(t, hasGeneratedName(create(t, route)))
	assert.False(t, hasGeneratedName(update(t, route, route)))
}

func TestAdmittedDenialIsTracked(t *testing.T) {
	d := withInFlight(t, Options{Enforcement: guard.EnforceWarn}, cluster, gatewayLimits)
	a := d.validated(t, create(t, routeLimits(100)))
	assert.True(t, a.Allowed)
	assert.Nil(t, a.Result)
	assert.Equal(t, 1, d.opts.InFlight.Len())
}
