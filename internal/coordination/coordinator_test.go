package coordination

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// placeOf returns where a replica has a write evaluated.
func (s *simulation) placeOf(r *replica) Place {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Second)
	defer cancel()
	p, err := r.Await(ctx, webhookTimeout, Place{})
	require.NoError(s, err)
	return p
}

func TestFirstReplicaWaitsForALeaseThatMayHaveBeenDeleted(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.run(LeaseDuration(webhookTimeout) - time.Second)
		assert.Nil(t, s.evaluating())
		assert.Less(t, s.until(a), 2*time.Second)
		b := s.start("b")
		s.run(time.Minute)
		assert.Same(t, a, s.evaluating(), "it renews the Lease")
		assert.Equal(t, Place{Term: "uid-1/1/a_1", Address: "a"}, s.placeOf(b))
		assert.True(t, s.placeOf(a).Local())
		assert.Equal(t, "leader, in term uid-1/1/a_1", a.Status())
		assert.Equal(t, "follower; the leader is a_1 at a", b.Status())
	})
}

func TestReplicaWithoutACompleteCacheDoesNotLead(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a", func(o *Options) { o.State.(*fakeState).unready = true })
		s.run(time.Minute)
		assert.Nil(t, s.table.get())
		a.state.mu.Lock()
		a.state.unready = false
		a.state.mu.Unlock()
		s.until(a)
	})
}

func TestLeaderCatchesUpBeforeItEvaluates(t *testing.T) {
	simulate(t, func(s *simulation) {
		hold := make(chan struct{})
		a := s.start("a", func(o *Options) { o.State.(*fakeState).hold = hold })
		s.run(10 * time.Second)
		assert.Equal(t, "a_1", record{s.table.get()}.holder())
		assert.Nil(t, s.evaluating(), "its cache may lack writes")
		assert.True(t, a.Accepts("uid-1/1/a_1"), "a write that is forwarded waits for it")
		close(hold)
		s.until(a)
		assert.Equal(t, 1, a.state.caughtUp)
	})
}

// TestCrash: the successor evaluates only once no write that the former leader admitted
// can be stored any more.
func TestCrash(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.until(a)
		b := s.start("b")
		s.run(3 * time.Second)
		a.state.setLog("w")
		a.crash()
		took := s.until(b)
		assert.Less(t, took, 8*time.Second)
		assert.Greater(t, took, 6*time.Second)
		assert.Empty(t, b.state.log())
		assert.Equal(t, 1, b.state.caughtUp)
	})
}

func TestLeaderWithoutConnectionStopsInTime(t *testing.T) {
	for name, cut := range map[string]func(*leaseClient){
		"requests":  func(c *leaseClient) { c.set(true, false) },
		"responses": func(c *leaseClient) { c.set(false, true) },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(s *simulation) {
				a := s.start("a")
				s.until(a)
				b := s.start("b")
				s.run(3 * time.Second)
				cut(a.lease)
				s.run(2500 * time.Millisecond)
				assert.Nil(t, s.evaluating(), "it does not know whether it holds the Lease")
				if name == "responses" {
					s.run(20 * time.Second)
					assert.Nil(t, s.evaluating(), "its renewals are stored: no one else may lead")
					a.lease.set(true, false)
				}
				s.until(b)
				a.lease.set(false, false)
				s.run(10 * time.Second)
				assert.Same(t, b, s.evaluating())
				assert.Equal(t, "b", s.placeOf(a).Address, "it is a follower")
			})
		})
	}
}

// A leader is valid from when it sent a renewal: another replica counts from when it was
// stored, which may be long before the response.
func TestLateResponseToARenewalDoesNotExtendTheTerm(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.until(a)
		const late = leaseTimeout - 100*time.Millisecond
		a.lease.setLate(late)
		s.run(5 * time.Second)
		stored := s.table.get().Spec.RenewTime.Time
		for s.table.get().Spec.RenewTime.Time.Equal(stored) {
			s.run(10 * time.Millisecond)
		}
		s.run(late + 10*time.Millisecond) // it has the response
		sent := s.table.get().Spec.RenewTime.Time
		a.lease.set(true, false)
		bounds := a.opts.Bounds
		s.run(bounds.validity(bounds.Timeout) - time.Since(sent) - 50*time.Millisecond)
		assert.Same(t, a, s.evaluating())
		s.run(100 * time.Millisecond)
		assert.Nil(t, s.evaluating(), "the lease may have run out for others when the writes of its reviews are stored")
	})
}

func TestShortInterruptionKeepsTheTerm(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.until(a)
		s.start("b")
		s.run(3 * time.Second)
		term := s.placeOf(a).Term
		a.lease.set(false, true)
		s.run(4 * time.Second)
		a.lease.set(false, false)
		s.run(3 * time.Second)
		assert.Same(t, a, s.evaluating())
		assert.Equal(t, term, s.placeOf(a).Term)
	})
}

func TestLeaseThatIsEdited(t *testing.T) {
	holder := "b_1"
	for name, c := range map[string]struct {
		edit  func(*leaseTable)
		keeps bool // the leader
	}{
		"another annotation": {func(l *leaseTable) {
			l.edit(func(l *coordinationv1.Lease) { l.Annotations["a"] = "b" })
		}, true},
		"the holder is another replica": {func(l *leaseTable) {
			l.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = &holder })
		}, false},
		"the holder is removed": {func(l *leaseTable) {
			l.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
		}, false},
		"deleted": {(*leaseTable).delete, false},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(s *simulation) {
				a := s.start("a")
				s.until(a)
				b := s.start("b")
				s.run(3 * time.Second)
				c.edit(s.table)
				if c.keeps {
					s.run(20 * time.Second)
					assert.Same(t, a, s.evaluating())
					assert.Equal(t, "b", s.table.get().Annotations["a"])
					return
				}
				s.run(time.Second)
				assert.Nil(t, s.evaluating(), "the leader reads that it lost the Lease, and no one may take it yet")
				s.run(5 * time.Second)
				assert.Nil(t, s.evaluating(), "what was admitted may be stored yet")
				s.run(5 * time.Second)
				assert.NotNil(t, s.evaluating())
				assert.Contains(t, []*replica{a, b}, s.evaluating())
			})
		})
	}
}

func TestRestartedProcessDoesNotContinueItsLease(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.until(a)
		a.crash()
		again := s.start("a") // with the same identity
		s.run(6 * time.Second)
		assert.Nil(t, s.evaluating())
		s.until(again)
	})
}

func TestLongerLeaseOfTheHolderIsRespected(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a", func(o *Options) { o.Bounds = NewBounds(webhookTimeout, 20*time.Second) })
		s.until(a)
		b := s.start("b")
		s.run(time.Second)
		a.crash()
		assert.Greater(t, s.until(b), 18*time.Second)
	})
}

// One edit of the Lease stops no writes for good.
func TestLongLeaseOfAStrangerEnds(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.until(a)
		holder, seconds := "stranger", int32(math.MaxInt32)
		s.table.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &holder, &seconds })
		s.run(MaxLease - time.Second)
		assert.Nil(t, s.evaluating())
		s.run(4 * time.Second)
		assert.Same(t, a, s.evaluating())
	})
}

func TestWorkRunsOnTheLeader(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.until(a)
		b := s.start("b")
		s.run(time.Second)
		begun, running := a.work.get()
		assert.Equal(t, []int{1, 1}, []int{begun, running})
		begun, _ = b.work.get()
		assert.Zero(t, begun)
		s.table.delete()
		s.run(time.Second)
		_, running = a.work.get()
		assert.Zero(t, running)
		s.run(10 * time.Second)
		_, atA := a.work.get()
		_, atB := b.work.get()
		assert.Equal(t, 1, atA+atB)
	})
}

func TestWorkThatFailsEndsTheReplica(t *testing.T) {
	simulate(t, func(s *simulation) {
		failure := errors.New("no rights")
		a := s.start("a", func(o *Options) { o.Work = func(context.Context) error { return failure } })
		assert.ErrorIs(t, <-a.ended, failure)
		a.ended <- nil
	})
}

func TestOtherProtocol(t *testing.T) {
	for name, edit := range map[string]func(map[string]string){
		"newer": func(m map[string]string) { m[AnnotationProtocol] = "2" },
		"none":  func(m map[string]string) { delete(m, AnnotationProtocol) },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(s *simulation) {
				a := s.start("a")
				s.until(a)
				a.crash()
				s.table.edit(func(l *coordinationv1.Lease) { edit(l.Annotations) })
				b := s.start("b")
				s.run(time.Second)
				_, err := b.Await(s.Context(), webhookTimeout, Place{})
				require.ErrorIs(t, err, ErrProtocol)
				assert.ErrorIs(t, b.Healthy(), ErrProtocol)
				s.until(b)
				assert.NoError(t, b.Healthy())
			})
		})
	}
}

// TestLongestTimeoutOfTheWebhook: a leader that renews its Lease in time evaluates at any
// moment with the longest timeout.
func TestLongestTimeoutOfTheWebhook(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.until(a)
		for range 100 {
			place, err := a.Await(s.Context(), a.opts.Bounds.MaxTimeout(), Place{})
			require.NoError(t, err)
			require.NoError(t, a.Check(place, a.opts.Bounds.MaxTimeout()))
			s.run(50 * time.Millisecond)
		}
	})
}

func TestFollowerForwardsALongerTimeoutThanItsOwn(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a", func(o *Options) { o.Bounds = NewBounds(10*time.Second, 0) })
		s.until(a)
		b := s.start("b")
		s.run(time.Second)
		place, err := b.Await(s.Context(), 10*time.Second, Place{})
		require.NoError(t, err)
		assert.Equal(t, "a", place.Address, "a rollout replaces one replica after the other")
	})
}

func TestAwaitWithoutLeader(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		ctx, cancel := context.WithTimeout(s.Context(), 2*time.Second)
		defer cancel()
		_, err := a.Await(ctx, webhookTimeout, Place{})
		require.ErrorIs(t, err, ErrNoLeader)
		assert.Equal(t, "follower; no replica leads", a.Status())
	})
}

// TestPlaceThatRefuses: a follower that forwards in an old term learns the new one.
func TestPlaceThatRefuses(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a")
		s.until(a)
		b := s.start("b")
		s.run(time.Second)
		old := s.placeOf(b)
		begun := time.Now()
		p, err := b.Await(s.Context(), webhookTimeout, old)
		require.NoError(t, err)
		assert.Equal(t, old, p, "nothing has changed")
		assert.GreaterOrEqual(t, time.Since(begun), refusedPause, "it does not forward in a loop")

		_, err = b.Forward(s.Context(), old, Review{})
		require.NoError(t, err, "the handler responds, whatever it says")
		s.network.set("a", true)
		_, err = b.Forward(s.Context(), old, Review{})
		assert.ErrorContains(t, err, "connection refused")
		s.network.mu.Lock()
		s.network.handlers["a"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) })
		s.network.mu.Unlock()
		s.network.set("a", false)
		_, err = b.Forward(s.Context(), old, Review{})
		assert.ErrorIs(t, err, ErrRefused)
	})
}
