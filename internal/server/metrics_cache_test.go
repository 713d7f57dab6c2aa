package server

import (
	"errors"
	"strings"
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
	const want = `
# HELP overrule_cache_age_seconds Time since the last event, bookmark or list of a resource.
# TYPE overrule_cache_age_seconds gauge
overrule_cache_age_seconds{resource="authpolicies.kuadrant.io"} 40
overrule_cache_age_seconds{resource="httproutes"} 15
# HELP overrule_cache_current 1 while no cache is stale.
# TYPE overrule_cache_current gauge
overrule_cache_current 1
# HELP overrule_storage_restores_total How often storage was found to be restored to an earlier state.
# TYPE overrule_storage_restores_total counter
overrule_storage_restores_total 1
# HELP overrule_watch_failures_total Failed lists and watches of a resource.
# TYPE overrule_watch_failures_total counter
overrule_watch_failures_total{resource="authpolicies.kuadrant.io"} 0
overrule_watch_failures_total{resource="gateways"} 3
overrule_watch_failures_total{resource="httproutes"} 5
# HELP overrule_watch_lists_total Lists of a resource.
# TYPE overrule_watch_lists_total counter
overrule_watch_lists_total{resource="authpolicies.kuadrant.io"} 1
overrule_watch_lists_total{resource="gateways"} 0
overrule_watch_lists_total{resource="httproutes"} 2
`
	require.NoError(t, testutil.CollectAndCompare(f, strings.NewReader(want[1:])))
	stale = errors.New("httproutes: no watch")
	require.NoError(t, testutil.CollectAndCompare(f, strings.NewReader(strings.Replace(want, "\noverrule_cache_current 1", "\noverrule_cache_current 0", 1)[1:])))
	problems, err := testutil.CollectAndLint(f)
	require.NoError(t, err)
	assert.Empty(t, problems)
}
