package webhook

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestStaleCacheIsNotReady(t *testing.T) {
	limits := api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}
	old := map[api.PolicyKind]error{}
	d := newTestServer(t, Options{CheckFresh: func(kind api.PolicyKind) error { return old[kind] }}, cluster, gatewayLimits, gatewayAuth)
	assert.True(t, d.validated(t, create(t, routeLimits(20))).Allowed)

	old[limits] = errors.New("secrets of ratelimitpolicies.kuadrant.io")
	for _, path := range []string{PathValidate, PathMutate} {
		w := d.post(t, path, review(t, create(t, routeLimits(20))))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.Equal(t, "close", w.Header().Get("Connection"), "another replica may know better")
		assert.NotContains(t, w.Body.String(), "kuadrant", "anyone who reaches the port may ask")
	}
	assert.Contains(t, d.log.String(), `"cause"="secrets of ratelimitpolicies.kuadrant.io"`)

	w := d.post(t, PathValidate, review(t, create(t, routeAuth("rules: {authorization: {key: {}}}"))))
	assert.Equal(t, http.StatusOK, w.Code, "the others are evaluated")

	delete(old, limits)
	assert.True(t, d.validated(t, create(t, routeLimits(20))).Allowed)
}

func TestAwaitPrecedesView(t *testing.T) {
	waited := 0
	var d *testServer
	d = newTestServer(t, Options{Await: func(ctx context.Context) {
		waited++
		end, ok := ctx.Deadline()
		assert.True(t, ok && time.Until(end) < 1500*time.Millisecond, "the evaluation needs time, too")
		if waited == 2 {
			addObjects(t, d.opts.Store, gatewayLimits)
		}
	}}, cluster)
	assert.True(t, d.validated(t, create(t, routeLimits(100))).Allowed)
	assert.False(t, d.validated(t, create(t, routeLimits(100))).Allowed, "the limits of the gateway came while it waited")
}
