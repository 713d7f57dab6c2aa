package cache

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// fakeAPI responds to lists and watches.
type fakeAPI struct {
	mu                sync.Mutex
	listErr, watchErr error
	list              *gateway.RouteObjectList
	watched           chan *watch.FakeWatcher
	version           string // of lists, "" for "5"
}

func (s *fakeAPI) newReflector(st *snapshot.Store, log logr.Logger) *reflector {
	into := routeSink(st)
	into.log = log
	lw := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.listErr != nil {
				return nil, s.listErr
			}
			return s.list.DeepCopyObject(), nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			if err := s.watchError(); err != nil {
				return nil, err
			}
			if s.watched == nil {
				return watch.NewEmptyWatch(), nil
			}
			w := watch.NewFake()
			s.watched <- w
			return w, nil
		},
	}
	return newReflector("httproutes", lw, &gateway.RouteObject{}, into)
}

func (s *fakeAPI) watchError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchErr
}

// failCalls sets the error of all calls from now on, nil to succeed.
func (s *fakeAPI) failCalls(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listErr, s.watchErr = err, err
}

// failWatches sets the error of watches only.
func (s *fakeAPI) failWatches(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchErr = err
}

// answer sets the result of lists from now on.
func (s *fakeAPI) answer(err error, routes ...gateway.RouteObject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listErr = err
	s.list = &gateway.RouteObjectList{ListMeta: metav1.ListMeta{ResourceVersion: cmp.Or(s.version, "5")}, Items: routes}
}

func (s *fakeAPI) call(t *testing.T, f *reflector) {
	t.Helper()
	_, _ = f.list(t.Context(), metav1.ListOptions{})
	_, _ = f.watch(t.Context(), metav1.ListOptions{})
}

func TestFailuresAreLoggedOnce(t *testing.T) {
	route := schema.GroupResource{Resource: "httproutes"}
	for sentence, c := range map[string]struct {
		err     error
		refused bool
		log     string
	}{
		"a lost connection": {err: errors.New("lost"), log: "cannot watch resource"},
		"a refusal":         {err: apierrors.NewForbidden(route, "", errors.New("no")), refused: true, log: "cannot watch resource"},
		// This is expected when a CRD is deleted, and after a minute without events:
		// neither is logged.
		"a resource that is gone":  {err: apierrors.NewNotFound(route, "")},
		"a watch that fell behind": {err: apierrors.NewResourceExpired("too old")},
	} {
		t.Run(sentence, func(t *testing.T) {
			log, lines := newLogBuffer()
			s := &fakeAPI{listErr: c.err, watchErr: c.err}
			f := s.newReflector(snapshot.New(), log)
			var refusals []error
			f.onForbidden = func(err error) { refusals = append(refusals, err) }
			s.call(t, f)
			once := lines.String()
			s.call(t, f)

			assert.Equal(t, once, lines.String())
			if c.log == "" {
				assert.Empty(t, once)
			}
			assert.Contains(t, once, c.log)
			assert.Equal(t, c.refused, len(refusals) > 0)
			assert.Equal(t, c.err, f.health.get().Err)
			assert.Equal(t, uint64(4), f.health.get().Failures)
		})
	}
}

func TestEmptyWatchIsAFailure(t *testing.T) {
	f := (&fakeAPI{}).newReflector(snapshot.New(), logr.Discard())
	_, err := f.watch(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, errConnectionCut)
	assert.Equal(t, SourceHealth{Source: "httproutes", Err: errConnectionCut, Failures: 1}, f.health.get())
}

func TestStoppedReflectorLogsNoFailure(t *testing.T) {
	log, lines := newLogBuffer()
	f := (&fakeAPI{listErr: context.Canceled}).newReflector(snapshot.New(), log)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.list(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, lines.String())
	assert.NoError(t, f.health.get().Err)
}

func TestReflectorRecoversWithoutStreamedLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := newLogBuffer()
		st := snapshot.New()
		s := &fakeAPI{listErr: errors.New("lost"), watched: make(chan *watch.FakeWatcher)}
		f := s.newReflector(st, log)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.run(ctx); close(done) }()

		synctest.Wait()
		assert.EqualError(t, f.health.get().Err, "lost")
		assert.False(t, f.health.get().Synced)

		s.answer(nil, *httpRoute("a"))
		w := <-s.watched
		w.Add(httpRoute("b"))
		w.Delete(httpRoute("a"))
		synctest.Wait()
		assert.Equal(t, map[string][]string{"app/b": nil}, storedRoutes(st))
		got := f.health.get()
		assert.NoError(t, got.Err)
		assert.True(t, got.Synced)
		assert.Contains(t, lines.String(), "watch recovered")

		// A watch that expired relists.
		s.answer(nil, *httpRoute("c"))
		w.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		<-s.watched
		synctest.Wait()
		assert.Equal(t, map[string][]string{"app/c": nil}, storedRoutes(st))
		assert.Equal(t, uint64(2), f.health.get().Lists)

		cancel()
		<-done
	})
}

// laggingAPI is an API server whose watch cache has only one of two routes. Only
// consistent lists and streams have both.
type laggingAPI struct {
	streams bool
	watched chan *watch.FakeWatcher
}

func (a *laggingAPI) routes(version string) (routes []gateway.RouteObject, reached string) {
	if version == "" {
		return []gateway.RouteObject{*routeAt("a", 3), *routeAt("b", 6)}, "7"
	}
	return []gateway.RouteObject{*routeAt("a", 3)}, "5"
}

func (a *laggingAPI) listWatch() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			routes, version := a.routes(o.ResourceVersion)
			return &gateway.RouteObjectList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: routes}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(3, false)
			if o.SendInitialEvents != nil {
				if !a.streams {
					return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
				}
				routes, version := a.routes(o.ResourceVersion)
				for i := range routes {
					w.Add(&routes[i])
				}
				end := &gateway.RouteObject{ObjectMeta: metav1.ObjectMeta{
					ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
				}}
				w.Action(watch.Bookmark, end)
			}
			a.watched <- w
			return w, nil
		},
	}
}

// The store must never return to an older state, whichever API server a list comes from:
// neither with the first list of a reflector that replaces another one, nor with a later
// one.
func TestRelistDoesNotReturnOlderState(t *testing.T) {
	for name, streams := range map[string]bool{"list": false, "streaming list": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := snapshot.New()
				both := map[string][]string{"app/a": nil, "app/b": nil}
				earlier := routeSink(st)
				require.NoError(t, earlier.Replace([]any{routeAt("a", 3), routeAt("b", 6)}, "6"))
				earlier.close()

				a := &laggingAPI{streams: streams, watched: make(chan *watch.FakeWatcher, 1)}
				f := newReflector("httproutes", a.listWatch(), &gateway.RouteObject{}, routeSink(st))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { f.run(ctx); close(done) }()
				for _, end := range []func(*watch.FakeWatcher){
					func(w *watch.FakeWatcher) { w.Error(&apierrors.NewResourceExpired("too old").ErrStatus) },
					func(*watch.FakeWatcher) { f.expire(errLost) },
					func(*watch.FakeWatcher) {},
				} {
					w := <-a.watched
					synctest.Wait()
					assert.Equal(t, both, storedRoutes(st))
					end(w)
				}
				assert.Equal(t, uint64(3), f.health.get().Lists)
				cancel()
				<-done
			})
		})
	}
}

// An overloaded API server must not receive a request each second for each resource.
func TestThrottledSourceIsRetriedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &fakeAPI{watched: make(chan *watch.FakeWatcher, 1)}
		s.answer(nil, *httpRoute("a"))
		f := s.newReflector(snapshot.New(), logr.Discard())
		end := make(chan struct{})
		go func() { f.run(ctx); close(end) }()
		w := <-s.watched
		s.failWatches(apierrors.NewTooManyRequests("busy", 1))
		w.Stop()
		time.Sleep(time.Minute)
		before := f.health.get()
		time.Sleep(time.Minute)
		after := f.health.get()
		assert.Less(t, after.Failures-before.Failures, uint64(50), "one in two seconds")
		assert.Equal(t, before.Lists, after.Lists, "no additional lists")
		s.failWatches(nil)
		<-s.watched
		cancel()
		<-end
	})
}
