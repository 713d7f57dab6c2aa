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

// A starting API server serves its resources one after another, and forbids each at
// first. A source with a long backoff must not wait longer than the last of them takes.
func TestRecoveredSourceWakesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &sourceGroup{}
		ctx, cancel := context.WithCancel(t.Context())
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, "", nil)
		of := map[string]*fakeAPI{}
		reflectors := map[string]*reflector{}
		ends := make(chan struct{})
		for _, name := range []string{"first", "second"} {
			s := &fakeAPI{watched: make(chan *watch.FakeWatcher, 1)}
			s.answer(forbidden, *httpRoute("a"))
			f := s.newReflector(snapshot.New(), logr.Discard())
			f.health.join(all)
			of[name], reflectors[name] = s, f
			go func() { f.run(ctx, all); ends <- struct{}{} }()
		}
		time.Sleep(time.Minute) // the pauses are 5 s by now, but for jitter
		began := reflectors["second"].health.get().Failures
		time.Sleep(time.Minute)
		require.Less(t, reflectors["second"].health.get().Failures-began, uint64(20), "a forbidden resource is not requested each second")

		of["second"].answer(nil, *httpRoute("a"))
		of["first"].answer(nil, *httpRoute("a"))
		for ctx.Err() == nil && !reflectors["first"].health.get().Synced && !reflectors["second"].health.get().Synced {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		for name, f := range reflectors {
			assert.True(t, f.health.get().DisconnectedSince.IsZero() && f.health.get().Synced, name)
		}
		cancel()
		<-ends
		<-ends
	})
}

func TestFlappingSourcesDoNotCauseRequestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &sourceGroup{}
		ctx, cancel := context.WithCancel(t.Context())
		s := &fakeAPI{}
		s.answer(apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, "", nil))
		f := s.newReflector(snapshot.New(), logr.Discard())
		f.health.join(all)
		end := make(chan struct{})
		go func() { f.run(ctx, all); close(end) }()
		time.Sleep(time.Minute)
		before := f.health.get().Failures
		for range 1000 {
			all.notifyRecovered()
			time.Sleep(10 * time.Millisecond)
		}
		asked := f.health.get().Failures - before
		assert.Greater(t, asked, uint64(8))
		assert.Less(t, asked, uint64(20), "in ten seconds")
		cancel()
		<-end
	})
}

// An overloaded API server must not receive a request each second for each resource.
func TestThrottledSourceIsRetriedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &fakeAPI{watched: make(chan *watch.FakeWatcher, 1)}
		s.answer(nil, *httpRoute("a"))
		f := s.newReflector(snapshot.New(), logr.Discard())
		end := make(chan struct{})
		go func() { f.run(ctx, &sourceGroup{}); close(end) }()
		w := <-s.watched
		s.failWatches(apierrors.NewTooManyRequests("busy", 1))
		w.Stop()
		time.Sleep(time.Minute)
		before := f.health.get()
		time.Sleep(time.Minute)
		after := f.health.get()
		assert.Less(t, after.Failures-before.Failures, uint64(20), "one in each five seconds")
		assert.Equal(t, before.Lists, after.Lists, "no additional lists")
		s.failWatches(nil)
		<-s.watched
		cancel()
		<-end
	})
}
