package inflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

var errNotLeader = errors.New("not the leader")

// reviewed is a write that another replica can decode from a text.
func reviewed(review string, w Write) Write {
	w.Review = func() []byte { return []byte(review) }
	return w
}

func TestAdmissible(t *testing.T) {
	refused := func(w Write) Write {
		w.Admissible = func() error { return errNotLeader }
		return w
	}
	for name, c := range map[string]struct {
		options Options
		write   func(*harness) Write
		want    error
	}{
		"a write that is tracked":        {Options{}, func(s *harness) Write { return s.create(modest) }, errNotLeader},
		"one that was observed":          {Options{}, func(s *harness) Write { return s.observedMeanwhile() }, errNotLeader},
		"one that creates what there is": {Options{}, func(s *harness) Write { return s.create(route) }, errNotLeader},
		"one over the quota that nothing denies": {Options{MaxWrites: 1}, func(s *harness) Write {
			s.admit(s.create(modest))
			w := s.create(onRoute("other", "a: 1"))
			w.Enforcement = guard.EnforceWarn
			return w
		}, errNotLeader},
		"a dry run": {Options{}, func(s *harness) Write {
			w := s.create(modest)
			w.DryRun = true
			return w
		}, nil},
		"one that changes nothing": {Options{}, func(s *harness) Write { return s.update(route, route) }, nil},
		"one that is denied": {Options{}, func(s *harness) Write {
			s.put(limit)
			return s.create(greedy)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, c.options, gatewayGroup, route)
			w := c.write(s)
			before := s.log.Len()
			_, err := s.log.Evaluate(t.Context(), s.guard, s.view, refused(w))
			require.ErrorIs(t, err, c.want)
			assert.Equal(t, before, s.log.Len(), "it is not tracked")
			asked := 0
			w.Admissible = func() error { asked++; return nil }
			_, err = s.log.Evaluate(t.Context(), s.guard, s.view, w)
			require.NoError(t, err)
			assert.Equal(t, c.want != nil, asked == 1)
		})
	}
}

// observedMeanwhile returns a write that is observed while it is evaluated.
func (s *harness) observedMeanwhile() Write {
	nowhere := worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]")
	s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
		s.observe(nowhere, "11")
		return nil, nil
	}
	return s.create(nowhere)
}

// The answer of Admissible counts for the write only if no other write is admitted after
// it.
func TestAdmissibleIsAskedUnderLock(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup, route)
	w := s.create(modest)
	w.Admissible = func() error {
		assert.False(t, s.log.mu.TryLock())
		return nil
	}
	s.admit(w)
}

func TestReviewCostsMemory(t *testing.T) {
	s := newHarness(t, Options{MaxBytes: 100 << 10}, append(namespaces("app", "infra"), gatewayGroup, route)...)
	s.admit(reviewed("x", s.create(limit)))
	large := reviewed(string(make([]byte, 50<<10)), s.create(modest))
	assert.Len(t, denials(s.evaluate(large)), 1)
	large.Size, large.Review = 0, nil
	s.admit(large)
	s.evaluate(s.create(greedy)) // traces the footprints
	s.log.Reset()
	assert.Equal(t, newShares(), s.log.shares)
}

// exported returns the reviews of an export, and their ages.
func (s *harness) exported() (reviews []string, ages []time.Duration) {
	s.Helper()
	pending, err := s.log.Export()
	require.NoError(s, err)
	for _, p := range pending {
		reviews, ages = append(reviews, string(p.Review)), append(ages, p.Age)
	}
	return reviews, ages
}

// imported imports writes of an age.
func (s *harness) imported(age time.Duration, writes ...Write) {
	s.Helper()
	var all []ImportedWrite
	for _, w := range writes {
		all = append(all, ImportedWrite{Write: reviewed(w.Change.Object().Ref().Name, w), Age: age})
	}
	require.NoError(s, s.log.Import(all, s.view))
}

func TestExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route, onRoute("old", "b: 1"))
		reviews, _ := s.exported()
		assert.Empty(t, reviews)
		s.admit(reviewed("first", s.create(limit)))
		time.Sleep(2 * time.Second)
		s.admit(reviewed("second", s.create(modest)))
		s.admit(reviewed("third", s.remove(onRoute("old", "b: 1"))))
		time.Sleep(time.Second)
		s.observe(modest, "11")
		reviews, ages := s.exported()
		assert.Equal(t, []string{"first", "third"}, reviews)
		assert.Equal(t, []time.Duration{3 * time.Second, time.Second}, ages)

		s.admit(s.create(onRoute("unknown", "b: 1")))
		_, err := s.log.Export()
		require.EqualError(t, err, "Paint app/unknown: the review of the write is not known")
		time.Sleep(2 * time.Minute)
		reviews, _ = s.exported()
		assert.Empty(t, reviews, "they have expired")
	})
}

func TestPendingAsJSON(t *testing.T) {
	data, err := json.Marshal([]Pending{{Review: []byte(`{"a":1}`), Age: time.Second}})
	require.NoError(t, err)
	assert.JSONEq(t, `[{"review":"eyJhIjoxfQ==","age":1000000000}]`, string(data))
	var back []Pending
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, []Pending{{Review: []byte(`{"a":1}`), Age: time.Second}}, back)
}

func TestImport(t *testing.T) {
	t.Run("counts for writes from then on", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.imported(time.Second, s.create(limit))
		assert.Equal(t, with(ofLimit), denials(s.evaluate(s.create(greedy))))
		s.observe(limit, "11")
		assert.Equal(t, []string{clipped}, denials(s.evaluate(s.create(greedy))))
		assert.Zero(t, s.log.Len())
		assert.Equal(t, newShares(), s.log.shares)
		assert.Equal(t, newIndex(), s.log.index)
	})
	t.Run("counts for one that is being evaluated", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		looks := 0
		s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
			if looks++; looks == 1 {
				s.imported(time.Second, s.create(limit))
			}
			return nil, nil
		}
		nowhere := worlds.PolicyDoc("Paint", "app", "greedy", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, "+
			"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]\na: 100")
		assert.Equal(t, with(ofLimit), denials(s.evaluate(s.create(nowhere))))
	})
	t.Run("is exported again in the same order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newHarness(t, Options{}, gatewayGroup, route)
			s.imported(time.Second, s.create(limit), s.create(modest))
			time.Sleep(time.Second)
			s.admit(reviewed("own", s.create(onRoute("own", "b: 1"))))
			reviews, ages := s.exported()
			assert.Equal(t, []string{"limit", "modest", "own"}, reviews)
			assert.Equal(t, []time.Duration{2 * time.Second, 2 * time.Second, 0}, ages)
		})
	})
	t.Run("ignores the quota", func(t *testing.T) {
		s := newHarness(t, Options{MaxWrites: 10}, append(namespaces("app", "infra"), gatewayGroup, route)...)
		s.imported(0, s.create(onRoute("a", "b: 1")), s.create(onRoute("b", "b: 1")), s.create(onRoute("c", "b: 1")), s.create(onRoute("e", "b: 1")))
		assert.Equal(t, 4, s.log.Len())
		s.admit(by("admin", s.create(elsewhere("infra", "g"))))
		assert.Equal(t, []string{"Retry TooMuch: too many admitted writes not yet observed, by this user or in namespace app"},
			denials(s.evaluate(s.create(onRoute("d", "b: 1")))))
	})
	t.Run("needs an empty log", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.imported(0, s.create(limit))
		require.ErrorIs(t, s.log.Import(nil, s.view), errNotEmpty)
		s.log.Reset()
		s.imported(0, s.create(modest))
		assert.Equal(t, 1, s.log.Len())
	})
}

// An entry that was imported expires by its age on the replica that admitted it. Ages
// that are in no order make none expire earlier, nor delay the others for ever.
func TestImportedWritesExpire(t *testing.T) {
	const bound = DefaultRequestTimeout + minLatency
	for name, c := range map[string]struct {
		ages []time.Duration
		want []time.Duration // when each expires
	}{
		"by their ages":            {[]time.Duration{30 * time.Second, 10 * time.Second}, []time.Duration{bound - 30*time.Second, bound - 10*time.Second}},
		"at once if they are old":  {[]time.Duration{time.Hour, 0}, []time.Duration{0, bound}},
		"not before an older one":  {[]time.Duration{10 * time.Second, 30 * time.Second}, []time.Duration{bound - 10*time.Second, bound - 10*time.Second}},
		"as new if time goes back": {[]time.Duration{-time.Hour}, []time.Duration{bound}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newHarness(t, Options{}, gatewayGroup, route)
				var writes []ImportedWrite
				for i, age := range c.ages {
					writes = append(writes, ImportedWrite{s.create(onRoute(fmt.Sprint("p", i), "b: 1")), age})
				}
				require.NoError(t, s.log.Import(writes, s.view))
				s.admit(s.create(onRoute("last", "b: 1")))
				start := time.Now()
				for i, at := range c.want {
					if left := at - time.Since(start); left > 0 {
						time.Sleep(left - time.Nanosecond)
						assert.Contains(t, s.log.Refs(), s.read(onRoute(fmt.Sprint("p", i), "b: 1")).Ref())
						time.Sleep(time.Nanosecond)
					}
					s.log.Len() // expires what is too old
					assert.NotContains(t, s.log.Refs(), s.read(onRoute(fmt.Sprint("p", i), "b: 1")).Ref())
				}
			})
		})
	}
}

func TestReset(t *testing.T) {
	t.Run("wakes an evaluation that waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newHarness(t, Options{MaxWait: time.Hour}, gatewayGroup, route)
			s.admit(s.create(limit))
			done := make(chan []string)
			go func() {
				d, err := s.log.Evaluate(t.Context(), s.guard, s.view, s.create(greedy))
				assert.NoError(t, err)
				done <- denials(d)
			}()
			synctest.Wait()
			start := time.Now()
			s.log.Reset()
			assert.Empty(t, <-done)
			assert.Zero(t, time.Since(start))
		})
	})
	t.Run("makes one that is running look again", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		looks := 0
		s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
			if looks++; looks == 1 {
				s.admit(s.create(limit)) // is in no view that this evaluation has
				s.log.Reset()
				assert.Zero(t, s.log.Len())
				assert.Len(t, s.log.entries, 1, "kept for the evaluation that is running")
				assert.Empty(t, s.log.Refs())
				s.imported(0, s.create(onRoute("imported", "b: 1")))
				reviews, _ := s.exported()
				assert.Equal(t, []string{"imported"}, reviews)
			}
			return nil, nil
		}
		nowhere := worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, "+
			"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]\na: 10")
		s.admit(s.create(nowhere))
		assert.Equal(t, 3, looks, "then it is evaluated alone and with what was imported")
		s.log.Reset()
		assert.Empty(t, s.log.entries)
		assert.Empty(t, s.log.perObject, "nothing is left behind")
		assert.Zero(t, s.log.busy.Load())
	})
}

// What a consistent list shows to a replica that has the log of another one.
func TestObserveList(t *testing.T) {
	old := onRoute("old", "b: 1")
	absent := func(s *harness, doc string) snapshot.Observation {
		return snapshot.Observation{Ref: s.read(doc).Ref(), Deleted: true}
	}
	listed := func(s *harness, doc, version string) snapshot.Observation {
		return snapshot.Observation{Ref: s.read(doc).Ref(), UID: uid(s.read(doc)), Version: version}
	}
	finalized := func(s *harness) Write {
		w := s.update(old, old)
		w.Finalized = true
		return w
	}
	for name, c := range map[string]struct {
		write func(*harness) Write
		list  func(*harness) snapshot.Observation
		ends  bool
	}{
		"lacks what may still be created":       {func(s *harness) Write { return s.create(modest) }, func(s *harness) snapshot.Observation { return absent(s, modest) }, false},
		"lacks what cannot be updated any more": {func(s *harness) Write { return s.update(old, onRoute("old", "b: 2")) }, func(s *harness) snapshot.Observation { return absent(s, old) }, true},
		"lacks what lost its last finalizer":    {finalized, func(s *harness) snapshot.Observation { return absent(s, old) }, true},
		"has what may still lose its finalizer": {finalized, func(s *harness) snapshot.Observation { return listed(s, old, "10") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, Options{}, gatewayGroup, route, old)
			s.imported(time.Second, c.write(s))
			require.Equal(t, []api.Ref{c.list(s).Ref}, s.log.Refs())
			s.log.Observe([]snapshot.Observation{c.list(s)})
			assert.Equal(t, c.ends, s.log.Len() == 0)
			assert.Equal(t, c.ends, len(s.log.Refs()) == 0)
		})
	}
}

func TestAwaitEmpty(t *testing.T) {
	t.Run("returns if there is no write", func(t *testing.T) {
		require.NoError(t, newHarness(t, Options{}).log.AwaitEmpty(t.Context()))
	})
	t.Run("waits until all are observed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newHarness(t, Options{}, gatewayGroup, route)
			s.admit(s.create(modest))
			s.admit(s.create(limit))
			done := make(chan error, 1)
			go func() { done <- s.log.AwaitEmpty(t.Context()) }()
			synctest.Wait()
			s.observe(limit, "11")
			synctest.Wait()
			assert.Empty(t, done)
			s.observe(modest, "12")
			require.NoError(t, <-done)
		})
	})
	t.Run("ends with its context", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.admit(s.create(modest))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := s.log.AwaitEmpty(ctx)
		require.ErrorIs(t, err, context.Canceled)
		assert.EqualError(t, err, "1 writes in flight: context canceled")
	})
}

// A log that was imported decides as the one that was exported, whatever is in it.
func TestImportedLogDecidesAlike(t *testing.T) {
	inFlight := 0
	for seed := range uint64(30) {
		d := dice{rand.New(rand.NewPCG(seed, 19))}
		s, other := newHarness(t, Options{}, gatewayGroup), newHarness(t, Options{})
		for _, k := range s.view().Kinds() {
			other.store.AddKind(k)
			other.store.KindListed(k.Ref())
		}
		other.put(gatewayGroup)
		for range 4 + d.IntN(8) {
			doc := d.object()
			s.put(doc)
			other.put(doc)
		}
		writes := make(map[string]Write)
		for i := range 8 {
			name := fmt.Sprint(i)
			w := d.write(s)
			writes[name] = w
			s.evaluate(reviewed(name, w))
		}
		pending, err := s.log.Export()
		require.NoError(t, err)
		var moved []ImportedWrite
		for _, p := range pending {
			moved = append(moved, ImportedWrite{writes[string(p.Review)], p.Age})
		}
		require.NoError(t, other.log.Import(moved, other.view))
		inFlight += len(moved)
		for range 10 {
			w := d.write(s)
			w.DryRun = true
			assert.Equal(t, s.met(w), other.met(w), "seed %d: %s", seed, w.Change.Object().Ref())
			assert.Equal(t, denials(s.evaluate(w)), denials(other.evaluate(w)), "seed %d: %s", seed, w.Change.Object().Ref())
		}
	}
	assert.Greater(t, inFlight, 100)
}
