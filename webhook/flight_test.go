package webhook

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/flight"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/store"
)

// flying is a server that keeps in mind what it admitted.
func flying(t *testing.T, o Options, manifests ...string) *doors {
	t.Helper()
	o.Store = store.New()
	o.Flight = flight.New(o.Store, flight.Options{Patience: -1})
	return open(t, o, manifests...)
}

func TestAWriteThatIsWrongOnlyWithOneOfAMomentAgoIsToBeTriedAgain(t *testing.T) {
	p := &paper{}
	d := flying(t, Options{Events: p}, cluster)
	limit := create(t, strings.Replace(gatewayLimits, "name: gw-limits,", "name: gw-limits, uid: u1,", 1))
	assert.True(t, d.validated(t, limit).Allowed)
	ref := api.Ref{Group: "kuadrant.io", Kind: "RateLimitPolicy", Namespace: "infra", Name: "gw-limits"}

	a := d.validated(t, create(t, routeLimits(100)))
	assert.Contains(t, said(t, a), " (together with the write of RateLimitPolicy infra/gw-limits, "+
		"admitted a moment ago and not seen in the cache yet: try again in a second)")
	assert.Equal(t, "ConstraintViolated", a.AuditAnnotations["denied"])
	a.Result.Message = ""
	assert.Equal(t, &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}, a.Result)

	assert.Empty(t, p.events, "nothing was decided")

	fill(t, d.Store, gatewayLimits)
	d.Store.Saw(store.Seen{Ref: ref, UID: "u0", Version: "7"})
	assert.Equal(t, 1, d.Flight.Len(), "that is another object of this name")
	d.Store.Saw(store.Seen{Ref: ref, UID: "u1", Version: "8"})
	assert.Zero(t, d.Flight.Len())
	a = d.validated(t, create(t, routeLimits(100)))
	assert.NotContains(t, said(t, a), "together")
	assert.Equal(t, int32(http.StatusForbidden), a.Result.Code)
	assert.Len(t, p.events, 1)
}

func TestWhereNothingIsDeniedNobodyHasToComeAgain(t *testing.T) {
	a := allow()
	comeAgain(&a)
	assert.True(t, a.Allowed)
	assert.Nil(t, a.Result)
	assert.True(t, a.again, "nothing was decided")
}

func TestADryRunIsNotKeptInMind(t *testing.T) {
	d := flying(t, Options{}, cluster)
	dry := create(t, gatewayLimits)
	dry.DryRun = new(true)
	assert.True(t, d.validated(t, dry).Allowed)
	assert.Zero(t, d.Flight.Len())
	assert.True(t, d.validated(t, create(t, routeLimits(100))).Allowed)
}

func TestWhatIsKeptInMindHasALimitInBytes(t *testing.T) {
	d := flying(t, Options{}, cluster)
	first := create(t, strings.Replace(gatewayLimits, "name: gw-limits,", "name: gw-limits, uid: u1,", 1))
	second := update(t, annotated(route, "a", "b"), route)
	d.Flight.Size = int64(len(first.Object.Raw) + len(second.Object.Raw) + len(second.OldObject.Raw) - 1)
	assert.True(t, d.validated(t, first).Allowed)
	a := d.validated(t, second)
	assert.Contains(t, said(t, a), "TooMuch: a large write was admitted and is not seen in the cache yet: no more can be kept in mind")
	assert.Equal(t, int32(http.StatusTooManyRequests), a.Result.Code)
	d.Flight.Size++
	assert.True(t, d.validated(t, second).Allowed)
}

func TestWhatIsAdmittedThoughItIsDeniedIsKeptInMind(t *testing.T) {
	d := flying(t, Options{Enforcement: guard.EnforceWarn}, cluster, gatewayLimits)
	a := d.validated(t, create(t, routeLimits(100)))
	assert.True(t, a.Allowed)
	assert.Nil(t, a.Result)
	assert.Equal(t, 1, d.Flight.Len())
}
