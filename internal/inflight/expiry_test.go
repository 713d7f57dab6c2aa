package inflight

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/process"
)

var errUnreachable = errors.New("the API server does not respond")

// stored are objects as the API server has them.
type stored struct {
	objects map[api.Ref]snapshot.Observation
	err     error
	reads   int
}

func (s *stored) read(_ context.Context, ref api.Ref) (snapshot.Observation, error) {
	s.reads++
	o, ok := s.objects[ref]
	if !ok {
		o = snapshot.Observation{Ref: ref, Deleted: true}
	}
	return o, s.err
}

// newExpiryHarness returns a harness whose log reads what is stored before a write
// expires.
func newExpiryHarness(t *testing.T, read func(context.Context, api.Ref) (snapshot.Observation, error)) *harness {
	s := newHarness(t, Options{ReadStored: read}, gatewayGroup, route)
	process.Run(t, s.log.Start)
	return s
}

// expireDue lets the log check what is due.
func (s *harness) expireDue() int {
	s.log.Len()
	synctest.Wait()
	return s.log.Len()
}

const dueAfter = DefaultRequestTimeout + minLatency

// A watch can be silent for longer than a write takes to expire: a write that is stored
// stays until the cache has it.
func TestOnlyUnstoredWritesExpire(t *testing.T) {
	old := onRoute("old", "b: 1")
	for name, c := range map[string]struct {
		write func(*harness) Write
		// stored is the object as it is stored: none if it is empty.
		stored  snapshot.Observation
		expires bool
	}{
		"a creation that failed":    {func(s *harness) Write { return s.create(limit) }, snapshot.Observation{}, true},
		"a creation that is stored": {func(s *harness) Write { return s.create(limit) }, snapshot.Observation{UID: "limit", Version: "11"}, false},
		"an update that is stored":  {func(s *harness) Write { return s.update(old, onRoute("old", "b: 2")) }, snapshot.Observation{UID: "old", Version: "11"}, false},
		"a deletion that is stored": {func(s *harness) Write { return s.remove(old) }, snapshot.Observation{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := stored{objects: make(map[api.Ref]snapshot.Observation)}
				s := newExpiryHarness(t, from.read)
				s.put(old)
				w := c.write(s)
				ref := w.Change.Object().Ref()
				if c.stored.UID != "" {
					c.stored.UID = uid(w.Change.Object())
					from.objects[ref] = c.stored
				}
				s.admit(w)
				time.Sleep(dueAfter - time.Nanosecond)
				assert.Equal(t, 1, s.expireDue())
				assert.Zero(t, from.reads, "it may be stored yet")
				time.Sleep(time.Nanosecond)
				assert.Equal(t, c.expires, s.expireDue() == 0)
				assert.Equal(t, 1, from.reads)
				time.Sleep(time.Hour)
				assert.Equal(t, c.expires, s.expireDue() == 0, "time changes nothing")
				s.store.Observe(snapshot.Observation{Ref: ref, UID: uid(w.Change.Object()), Version: "12"})
				assert.Zero(t, s.expireDue())
			})
		})
	}
}

func TestWriteOfUnwatchedKindExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := stored{objects: make(map[api.Ref]snapshot.Observation)}
		s := newExpiryHarness(t, from.read)
		s.put(onRoute("old", "b: 1"))
		s.admit(s.remove(onRoute("old", "b: 1")))
		from.objects[s.log.Refs()[0]] = snapshot.Observation{}
		time.Sleep(dueAfter)
		assert.Zero(t, s.expireDue())
	})
}

func TestExpiryWaitsForAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := stored{err: errUnreachable, objects: make(map[api.Ref]snapshot.Observation)}
		s := newExpiryHarness(t, from.read)
		s.admit(s.create(limit))
		time.Sleep(dueAfter)
		assert.Equal(t, 1, s.expireDue())
		assert.Equal(t, 1, s.expireDue())
		assert.Equal(t, 1, from.reads, "not at each look")
		time.Sleep(checkInterval)
		from.err = nil
		assert.Zero(t, s.expireDue())
	})
}

// A write that meets one that is due does not have to be retried by the client.
func TestEvaluationWaitsForExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := stored{objects: make(map[api.Ref]snapshot.Observation)}
		s := newExpiryHarness(t, from.read)
		s.log.Options.MaxWait = time.Second
		s.admit(s.create(limit))
		time.Sleep(dueAfter)
		s.admit(s.create(greedy))
		synctest.Wait()
		assert.Equal(t, 1, from.reads)
	})
}

// What ends in another way, while it is read, is no matter.
func TestEndWhileStoredIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reading, proceed := make(chan struct{}), make(chan struct{})
		s := newExpiryHarness(t, func(ctx context.Context, ref api.Ref) (snapshot.Observation, error) {
			_, bounded := ctx.Deadline()
			assert.True(t, bounded)
			reading <- struct{}{}
			<-proceed
			return snapshot.Observation{Ref: ref, Deleted: true}, nil
		})
		s.admit(s.create(limit))
		time.Sleep(dueAfter)
		assert.Equal(t, 1, s.log.Len())
		<-reading
		s.log.Reset()
		require.NoError(t, s.log.Import([]ImportedWrite{{Write: s.create(modest)}}, s.view))
		close(proceed)
		synctest.Wait()
		assert.Equal(t, 1, s.log.Len())
		assert.Zero(t, s.log.endedCount)
	})
}
