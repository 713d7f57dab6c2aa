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
	"overrule.dev/overrule/test/fixture"
)

// counted is a cluster with its census.
func counted(t testing.TB, size fixture.Size) (*fixture.Cluster, *census) {
	t.Helper()
	c, err := fixture.New(size)
	require.NoError(t, err)
	return c, &census{engine: effective.NewEngine(), log: logr.Discard()}
}

func (c *census) now(s *snapshot.Store) effective.StateCounts {
	v, _ := s.View()
	return c.count(v)
}

// same tells that two counts are one: nothing was counted for the second.
func same(a, b effective.StateCounts) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func TestScrapesThatComeTogetherCountOnce(t *testing.T) {
	c, paths := counted(t, fixture.Size{Gateways: 10, Routes: 300})
	got := make([]effective.StateCounts, 8)
	var scrapes sync.WaitGroup
	for i := range got {
		scrapes.Go(func() { got[i] = paths.now(c.Store) })
	}
	scrapes.Wait()
	require.NotEmpty(t, got[0])
	for _, other := range got {
		assert.True(t, same(got[0], other))
	}
}

func TestACensusIsOfTheViewOrNotOldYet(t *testing.T) {
	c, paths := counted(t, fixture.Size{Gateways: 1, Routes: 10})
	age := func() { paths.at = paths.at.Add(-2 * censusAge) }
	first := paths.now(c.Store)
	age()
	assert.True(t, same(first, paths.now(c.Store)), "nothing changed: it holds for ever")

	v, _ := c.Store.View()
	var last api.Ref
	for o := range v.Objects(api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindHTTPRoute}) {
		last = o.Ref()
	}
	c.Store.Apply(snapshot.Delete(last))
	paths.at = time.Now()
	assert.True(t, same(first, paths.now(c.Store)), "it is not old yet")
	age()
	after := paths.now(c.Store)
	assert.Less(t, total(after[c.Auth.Ref()]), total(first[c.Auth.Ref()]))
}

func total(s effective.States) int { return s.Enforced + s.PartiallyEnforced + s.Inactive + s.None }

// A fault where paths are counted ends neither the process nor the scrape.
func TestAPanicLeavesTheMetricOutAndIsLogged(t *testing.T) {
	c, err := fixture.New(fixture.Size{Gateways: 1, Routes: 10})
	require.NoError(t, err)
	var logged []string
	held := newHoldings(c.Store, nil, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	for range 2 { // not tried again at once
		assert.Zero(t, testutil.CollectAndCount(held, "overrule_paths"))
	}
	assert.Positive(t, testutil.CollectAndCount(held, "overrule_policies"))
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0], "the metric overrule_paths is left out")
	assert.Contains(t, logged[0], "panic: ")
}

// BenchmarkScrape is what a scrape costs of what the store holds, in a cluster of
// the full size: where nothing changed since the last one, or where the paths are
// counted, which is once in censusAge at most. It runs on the goroutine of whoever
// scrapes, and holds no lock that a judge takes. "bare" has no policies; "walk" is
// a visit of every path, for comparison.
func BenchmarkScrape(b *testing.B) {
	c, err := fixture.New(fixture.Full)
	require.NoError(b, err)
	bare, err := fixture.New(fixture.Full)
	require.NoError(b, err)
	for _, kind := range []api.PolicyKind{bare.Auth.Ref(), bare.Limits.Ref()} {
		bare.Store.Replace(kind, nil)
	}
	for _, at := range []struct {
		name    string
		cluster *fixture.Cluster
		changed bool
	}{{"unchanged", c, false}, {"changed", c, true}, {"bare", bare, true}} {
		b.Run(at.name, func(b *testing.B) {
			held := newHoldings(at.cluster.Store, effective.NewEngine(), logr.Discard())
			series := testutil.CollectAndCount(held)
			b.ReportAllocs()
			for b.Loop() {
				if at.changed {
					held.paths.of, held.paths.at = weak.Pointer[snapshot.View]{}, time.Time{}
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
