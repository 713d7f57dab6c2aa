package coordination

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// led returns a simulation's leader a, and its followers.
func (s *simulation) led(followers ...string) (leader *replica, rest []*replica) {
	leader = s.start("a")
	s.until(leader)
	for _, name := range followers {
		rest = append(rest, s.start(name))
		s.run(time.Second)
	}
	s.run(3 * time.Second)
	return leader, rest
}

func TestTransfer(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, rest := s.led("b", "c")
		b, c := rest[0], rest[1]
		a.state.setLog("in flight")
		begun := time.Now()
		a.HandOver(s.Context())
		took := s.until(c)
		assert.Less(t, time.Since(begun), time.Second, "took %s after it", took)
		assert.Equal(t, "in flight", c.state.log(), "the newest replica has the log")
		assert.Equal(t, 1, c.state.caughtUp)
		assert.Empty(t, b.state.log())
		assert.NotContains(t, s.table.get().Annotations, AnnotationTransferred)
		assert.Equal(t, int32(2), record{s.table.get()}.transitions())

		s.run(time.Second)
		assert.Equal(t, "c", s.placeOf(a).Address, "it forwards until the process ends")
		c.crash()
		s.until(b)
		s.run(10 * time.Second)
		assert.NotSame(t, a, s.evaluating(), "it does not lead again")
	})
}

func TestReleaseWithoutSuccessor(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, _ := s.led()
		a.HandOver(s.Context())
		a.crash()
		b := s.start("b")
		assert.Less(t, s.until(b), time.Second)
	})
}

// TestReleaseWaitsForTheLog: without a successor, the next leader does not know the log.
func TestReleaseWaitsForTheLog(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, _ := s.led()
		a.state.setLog("in flight")
		done := make(chan struct{})
		go func() {
			a.HandOver(context.Background())
			close(done)
		}()
		s.run(time.Second)
		assert.NotContains(t, s.table.get().Annotations, AnnotationReleased)
		assert.Nil(t, s.evaluating(), "it has stopped")
		a.state.setLog("")
		<-done
		assert.Contains(t, s.table.get().Annotations, AnnotationReleased)
	})
}

func TestLogThatDoesNotBecomeEmptyKeepsTheLease(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, _ := s.led()
		a.state.setLog("never stored")
		begun := time.Now()
		a.HandOver(s.Context())
		assert.LessOrEqual(t, time.Since(begun), emptyTimeout+renewInterval)
		assert.NotContains(t, s.table.get().Annotations, AnnotationReleased)
		b := s.start("b")
		s.run(6 * time.Second)
		assert.Nil(t, s.evaluating())
		s.until(b)
	})
}

// TestTransferThatFails: a successor that cannot take the log does not get the Lease.
func TestTransferThatFails(t *testing.T) {
	for name, c := range map[string]func(*simulation, *replica){
		"connection": func(s *simulation, _ *replica) { s.network.set("b", true) },
		"import":     func(_ *simulation, b *replica) { b.state.failsTo = errors.New("unknown kind") },
		"not ready": func(_ *simulation, b *replica) {
			b.state.mu.Lock()
			defer b.state.mu.Unlock()
			b.state.unready = true
		},
		"shutdown": func(_ *simulation, b *replica) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.leaving = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(s *simulation) {
				a, rest := s.led("b")
				a.state.setLog("in flight")
				c(s, rest[0])
				go a.HandOver(context.Background())
				s.run(2500 * time.Millisecond)
				lease := s.table.get()
				assert.NotContains(t, lease.Annotations, AnnotationTransferred)
				assert.NotContains(t, lease.Annotations, AnnotationReleased)
				a.state.setLog("")
				s.run(time.Second)
				if name == "connection" || name == "import" {
					assert.Same(t, rest[0], s.evaluating(), "the Lease was released with an empty log")
				}
			})
		})
	}
}

// TestTransferWithAnotherLog: a Lease that is transferred without its log runs out.
func TestTransferWithAnotherLog(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, rest := s.led("b")
		b := rest[0]
		require.NoError(t, b.receive(handover{Term: "uid-1/0/x", Writes: []byte(`"old"`)}))
		a.crash()
		s.table.edit(func(l *coordinationv1.Lease) {
			term := record{l}.term()
			l.Annotations[AnnotationTransferred], l.Annotations[AnnotationAddress] = term, "b"
			identity := "b_1"
			l.Spec.HolderIdentity = &identity
		})
		s.run(6 * time.Second)
		assert.Nil(t, s.evaluating())
		s.until(b)
		assert.Empty(t, b.state.log(), "it belongs to another term")
	})
}

func TestTransferWhoseResponseIsLost(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, rest := s.led("b")
		a.lease.set(false, true)
		go a.HandOver(context.Background())
		s.until(rest[0])
		a.lease.set(false, false)
		s.run(10 * time.Second)
		assert.Same(t, rest[0], s.evaluating())
	})
}

// TestLeaderWithAStaleCache: it rejects writes, and another replica does not.
func TestLeaderWithAStaleCache(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, rest := s.led("b")
		setReady := func(r *replica, ready bool) {
			r.state.mu.Lock()
			defer r.state.mu.Unlock()
			r.state.unready = !ready
		}
		setReady(rest[0], false)
		s.run(5 * time.Second)
		setReady(a, false)
		s.run(5 * time.Second)
		assert.Same(t, a, s.evaluating(), "no other replica can do better")
		setReady(rest[0], true)
		assert.Less(t, s.until(rest[0]), 3*time.Second)
		setReady(a, true)
		rest[0].crash()
		s.until(a)
	})
}

func TestHandOverOfAFollower(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, rest := s.led("b")
		rest[0].HandOver(s.Context())
		assert.Same(t, a, s.evaluating())
		a.crash()
		s.run(20 * time.Second)
		assert.Nil(t, s.evaluating(), "it is shutting down")
	})
}

func TestHandOverWhileCatchingUp(t *testing.T) {
	simulate(t, func(s *simulation) {
		a := s.start("a", func(o *Options) { o.State.(*fakeState).hold = make(chan struct{}) })
		s.run(10 * time.Second)
		b := s.start("b")
		s.run(3 * time.Second)
		a.HandOver(s.Context())
		assert.Less(t, s.until(b), time.Second)
	})
}

func TestRequestsBetweenReplicas(t *testing.T) {
	simulate(t, func(s *simulation) {
		a, rest := s.led("b")
		handler := rest[0].Handler(http.NotFoundHandler(), 100)
		call := func(method, path, body string) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(s.Context(), method, path, bytes.NewBufferString(body)))
			return w.Code
		}
		assert.Equal(t, http.StatusMethodNotAllowed, call(http.MethodGet, pathHandOver, ""))
		assert.Equal(t, http.StatusNotFound, call(http.MethodPost, "/v2/handover", ""))
		assert.Equal(t, http.StatusBadRequest, call(http.MethodPost, pathHandOver, `{"term":`))
		assert.Equal(t, http.StatusBadRequest, call(http.MethodPost, pathHello, `[]`))
		assert.Equal(t, http.StatusRequestEntityTooLarge, call(http.MethodPost, pathHandOver, `{"term":"`+strings.Repeat("x", 100)+`"}`))
		assert.Equal(t, http.StatusOK, call(http.MethodPost, pathWake, ""))
		assert.Equal(t, http.StatusOK, call(http.MethodPost, pathHandOver, `{"term":"t","writes":"\"w\""}`))

		handler = a.Handler(http.NotFoundHandler(), 100)
		assert.Equal(t, http.StatusConflict, call(http.MethodPost, pathHandOver, `{"term":"t","writes":"\"w\""}`), "it leads")
	})
}
