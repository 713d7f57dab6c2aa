package server

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"overrule.dev/overrule/internal/controllers/canary"
)

func TestCanaryWaitsForWriteOfThisTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &canaryRunner{record: canary.NewRecord(true), configured: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			ready := false
			go func() {
				r.waitForWebhooks(ctx)
				ready = true
			}()
			synctest.Wait()
			assert.False(t, ready, "nothing was written in this term")
			r.webhooksWritten(admissionregistrationv1.Fail)
			r.webhooksWritten(admissionregistrationv1.Fail)
			synctest.Wait()
			assert.True(t, ready)
			assertArmed(t, r, "1")
			r.registrarStopped()
			assertArmed(t, r, "0")
		}
	})
}

func assertArmed(t *testing.T, r *canaryRunner, want string) {
	t.Helper()
	require.NoError(t, testutil.CollectAndCompare(r.record, strings.NewReader(`
# HELP overrule_armed 1 if this replica is the leader and last wrote failurePolicy Fail (--arm).
# TYPE overrule_armed gauge
overrule_armed `+want+"\n"), "overrule_armed"))
}

func TestDisabledCanaryIgnoresRegistrar(t *testing.T) {
	var r *canaryRunner
	r.webhooksWritten(admissionregistrationv1.Fail)
	r.registrarStopped()
}
