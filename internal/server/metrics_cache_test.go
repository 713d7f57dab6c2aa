package server

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/cache"
)

func TestCacheCollector(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	var stale error
	f := cacheCollector{
		now: func() time.Time { return now }, stale: func() error { return stale }, restores: func() uint64 { return 1 },
		health: func() []cache.SourceHealth {
			return []cache.SourceHealth{
				{Source: "authpolicies.kuadrant.io", Synced: true, LastContact: ago(40), Lists: 1},
				{Source: "gateways", Failures: 3},
				{Source: "httproutes", Synced: true, LastContact: ago(2), DisconnectedSince: ago(15), Lists: 2, Failures: 5},
			}
		},
	}
	want, err := os.ReadFile("testdata/cache.prom")
	require.NoError(t, err)
	require.NoError(t, testutil.CollectAndCompare(f, bytes.NewReader(want)))
	stale = errors.New("httproutes: no watch")
	require.NoError(t, testutil.CollectAndCompare(f, bytes.NewReader(bytes.Replace(want, []byte("\noverrule_cache_current 1"), []byte("\noverrule_cache_current 0"), 1))))
	problems, err := testutil.CollectAndLint(f)
	require.NoError(t, err)
	assert.Empty(t, problems)
}
