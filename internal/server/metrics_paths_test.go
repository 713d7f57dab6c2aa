package server

import (
	"math"
	"reflect"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// newTestCounter returns a cluster and a counter of its paths.
func newTestCounter(t testing.TB, size worlds.Size) (*worlds.Cluster, *pathCounter) {
	t.Helper()
	c := worlds.Mix(t, size)
	return c, &pathCounter{engine: effective.NewEngine(), log: logr.Discard()}
}

func (c *pathCounter) countStore(s *snapshot.Store) effective.StateCounts {
	v, _ := s.View()
	return c.count(v)
}

// sameCount reports whether two counts are one: nothing was counted for the second.
func sameCount(a, b effective.StateCounts) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func TestConcurrentScrapesCountOnce(t *testing.T) {
	c, paths := newTestCounter(t, worlds.Size{Gateways: 10, Routes: 300})
	got := make([]effective.StateCounts, 8)
	var scrapes sync.WaitGroup
	for i := range got {
		scrapes.Go(func() { got[i] = paths.countStore(c.Store) })
	}
	scrapes.Wait()
	require.NotEmpty(t, got[0])
	for _, other := range got {
		assert.True(t, sameCount(got[0], other))
	}
}

func TestPathCountIsCached(t *testing.T) {
	c, paths := newTestCounter(t, worlds.Size{Gateways: 1, Routes: 10})
	age := func() { paths.countedAt = paths.countedAt.Add(-2 * pathCountTTL) }
	first := paths.countStore(c.Store)
	age()
	assert.True(t, sameCount(first, paths.countStore(c.Store)), "unchanged: it is reused")

	v, _ := c.Store.View()
	var last api.Ref
	for o := range v.Objects(api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindHTTPRoute}) {
		last = o.Ref()
	}
	c.Store.Apply(snapshot.Delete(last))
	paths.countedAt = time.Now()
	assert.True(t, sameCount(first, paths.countStore(c.Store)), "it has not expired yet")
	age()
	after := paths.countStore(c.Store)
	assert.Less(t, total(after[c.Auth.Ref()]), total(first[c.Auth.Ref()]))
}

func total(s effective.States) int { return s.Enforced + s.PartiallyEnforced + s.Inactive + s.None }

// A panic in the count ends neither the process nor the scrape.
func TestPanicOmitsTheMetricAndIsLogged(t *testing.T) {
	c := worlds.Mix(t, worlds.Size{Gateways: 1, Routes: 10})
	var logged []string
	held := newStoreCollector(c.Store, nil, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	for range 2 { // not counted again before it expires
		assert.Zero(t, testutil.CollectAndCount(held, "overrule_paths"))
	}
	assert.Positive(t, testutil.CollectAndCount(held, "overrule_policies"))
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0], "omitting overrule_paths")
	assert.Contains(t, logged[0], "panic: ")
}

// BenchmarkScrape is the cost of a scrape of the storeCollector, in a cluster of full
// size: without changes since the last one, or with a count of the paths, which is
// made at most once per pathCountTTL. It runs on the goroutine of the scrape, and
// holds no lock that evaluations need. "bare" has no policies; "walk" visits every
// path, for comparison.
func BenchmarkScrape(b *testing.B) {
	c := worlds.Mix(b, worlds.Full)
	bare := worlds.Mix(b, worlds.Full)
	for _, kind := range []api.PolicyKind{bare.Auth.Ref(), bare.Limits.Ref()} {
		bare.Store.Replace(kind, nil)
	}
	for _, at := range []struct {
		name    string
		cluster *worlds.Cluster
		changed bool
	}{{"unchanged", c, false}, {"changed", c, true}, {"bare", bare, true}} {
		b.Run(at.name, func(b *testing.B) {
			held := newStoreCollector(at.cluster.Store, effective.NewEngine(), logr.Discard())
			series := testutil.CollectAndCount(held)
			b.ReportAllocs()
			for b.Loop() {
				if at.changed {
					held.paths.countedView, held.paths.countedAt = weak.Pointer[snapshot.View]{}, time.Time{}
				}
				require.Equal(b, series, testutil.CollectAndCount(held))
			}
		})
	}
	b.Run("walk", func(b *testing.B) {
		v, _ := c.Store.View()
		e := effective.NewEngine()
		b.ReportAllocs()
		for b.Loop() {
			paths := 0
			require.NoError(b, e.Walk(v, effective.Scope{All: true}, true, effective.NewBudget(b.Context(), math.MaxUint64), func(*effective.Effective) error {
				paths++
				return nil
			}))
			require.Positive(b, paths)
		}
	})
}
