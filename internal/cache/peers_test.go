package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"overrule.dev/overrule/internal/snapshot"
)

// An API server that has started gives out its resources one after another, and
// each is forbidden first: whoever has waited for long must not wait for longer
// than the last of them takes.
func TestASourceThatWorksAgainHasTheOthersTryAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &peers{}
		ctx, cancel := context.WithCancel(t.Context())
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, "", nil)
		of := map[string]*server{}
		feeds := map[string]*feed{}
		ends := make(chan struct{})
		for _, name := range []string{"first", "second"} {
			s := &server{watched: make(chan *watch.FakeWatcher, 1)}
			s.answer(forbidden, *httpRoute("a"))
			f := s.feed(snapshot.New(), logr.Discard())
			f.contact.join(all)
			of[name], feeds[name] = s, f
			go func() { f.run(ctx, all); ends <- struct{}{} }()
		}
		time.Sleep(time.Minute) // the pauses are 5 s by now, but for jitter
		began := feeds["second"].contact.get().Failures
		time.Sleep(time.Minute)
		require.Less(t, feeds["second"].contact.get().Failures-began, uint64(20), "a refusal is not asked about each second")

		of["second"].answer(nil, *httpRoute("a"))
		of["first"].answer(nil, *httpRoute("a"))
		for ctx.Err() == nil && !feeds["first"].contact.get().Synced && !feeds["second"].contact.get().Synced {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		for name, f := range feeds {
			assert.True(t, f.contact.get().BlindSince.IsZero() && f.contact.get().Synced, name)
		}
		cancel()
		<-ends
		<-ends
	})
}

func TestSourcesThatBreakAndMendHaveNoOtherAskAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &peers{}
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{}
		s.answer(apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, "", nil))
		f := s.feed(snapshot.New(), logr.Discard())
		f.contact.join(all)
		end := make(chan struct{})
		go func() { f.run(ctx, all); close(end) }()
		time.Sleep(time.Minute)
		before := f.contact.get().Failures
		for range 1000 {
			all.wake()
			time.Sleep(10 * time.Millisecond)
		}
		asked := f.contact.get().Failures - before
		assert.Greater(t, asked, uint64(8))
		assert.Less(t, asked, uint64(20), "in ten seconds")
		cancel()
		<-end
	})
}

// An API server that has too much to do is not asked each second, for each resource.
func TestASourceThatIsPutOffIsAskedForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{watched: make(chan *watch.FakeWatcher, 1)}
		s.answer(nil, *httpRoute("a"))
		f := s.feed(snapshot.New(), logr.Discard())
		end := make(chan struct{})
		go func() { f.run(ctx, &peers{}); close(end) }()
		w := <-s.watched
		s.putOff(apierrors.NewTooManyRequests("busy", 1))
		w.Stop()
		time.Sleep(time.Minute)
		before := f.contact.get()
		time.Sleep(time.Minute)
		after := f.contact.get()
		assert.Less(t, after.Failures-before.Failures, uint64(20), "one in each five seconds")
		assert.Equal(t, before.Lists, after.Lists, "it is busy enough")
		s.putOff(nil)
		<-s.watched
		cancel()
		<-end
	})
}
