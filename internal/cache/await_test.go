package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newTestWatcher returns a Watcher of sources that are listed and have a watch.
func newTestWatcher(names ...string) (*Watcher, map[string]*healthTracker) {
	w, all := &Watcher{registry: &registry{}, sources: newSourceGroup()}, map[string]*healthTracker{}
	for _, name := range names {
		c := newHealthTracker(name)
		c.join(&w.sources)
		c.watchOpened(false)
		c.recordList()
		w.core = append(w.core, &reflector{source: name, health: c})
		all[name] = c
	}
	w.definitions = w.core[0]
	w.core = w.core[1:]
	return w, all
}

// startUpdateWaiting runs updateWaiting in the background.
func startUpdateWaiting(ctx context.Context, w *Watcher) { go w.updateWaiting(ctx) }

func TestAwaitWhileWatchReconnects(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "")
	const patience = time.Minute
	for sentence, c := range map[string]struct {
		with func(map[string]*healthTracker)
		want time.Duration
	}{
		"all are open": {with: func(map[string]*healthTracker) {}},
		"one is open again after a while": {
			with: func(of map[string]*healthTracker) {
				of["gateways"].watchClosed()
				time.AfterFunc(time.Second, func() { of["gateways"].watchOpened(false) })
			},
			want: time.Second,
		},
		"one reconnects while another disconnects": {
			with: func(of map[string]*healthTracker) {
				of["gateways"].watchClosed()
				time.AfterFunc(time.Second, func() { of["services"].watchClosed() })
				time.AfterFunc(2*time.Second, func() { of["gateways"].watchOpened(false) })
				time.AfterFunc(3*time.Second, func() { of["services"].watchOpened(false) })
			},
			want: 3 * time.Second,
		},
		"a streaming watch is connected after its list": {
			with: func(of map[string]*healthTracker) {
				of["gateways"].watchClosed()
				time.AfterFunc(time.Second, func() { of["gateways"].watchOpened(true) })
				time.AfterFunc(2*time.Second, func() { of["gateways"].recordList() })
			},
			want: 2 * time.Second,
		},
		"one that does not respond becomes stale": {
			with: func(of map[string]*healthTracker) {
				of["gateways"].watchClosed()
				of["gateways"].recordFailure(errLost)
			},
			want: StaleAfter,
		},
		"a policy kind is forbidden": {
			with: func(of map[string]*healthTracker) {
				of["gateways"].health.Kind = colors
				of["gateways"].watchClosed()
				of["gateways"].recordFailure(errNoRight)
			},
		},
		"an API server that has just started forbids all lists": {
			with: func(of map[string]*healthTracker) {
				of["gateways"].watchClosed()
				of["gateways"].recordFailure(errNoRight)
				time.AfterFunc(time.Second, func() { of["gateways"].watchOpened(false) })
			},
			want: time.Second,
		},
		"one is not served any more": {
			with: func(of map[string]*healthTracker) {
				of["gateways"].watchClosed()
				of["gateways"].recordFailure(missing)
			},
		},
		"one is not served any more after a while": {
			with: func(of map[string]*healthTracker) {
				of["gateways"].watchClosed()
				time.AfterFunc(time.Second, func() { of["gateways"].recordFailure(missing) })
			},
			want: time.Second,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, all := newTestWatcher("customresourcedefinitions", "gateways", "services")
				c.with(all)
				startUpdateWaiting(t.Context(), w)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				w.Await(ctx)
				assert.InDelta(t, c.want, time.Since(start), float64(time.Millisecond))
			})
		})
	}
}

func TestAwaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := newTestWatcher("gateways")
		startUpdateWaiting(t.Context(), w)
		all["gateways"].watchClosed()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		w.Await(ctx)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestAwaitIgnoresRemovedSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := newTestWatcher("customresourcedefinitions", "gateways")
		gateways := &watchedKind{reflector: w.core[0]}
		w.core, w.registry.watched = nil, map[string]*watchedKind{"gateways": gateways}
		startUpdateWaiting(t.Context(), w)
		all["gateways"].watchClosed()
		time.AfterFunc(time.Second, func() {
			w.registry.mu.Lock()
			defer w.registry.mu.Unlock()
			delete(w.registry.watched, "gateways")
			all["gateways"].leave()
		})
		start := time.Now()
		w.Await(t.Context())
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// A review that arrives at this moment waits, even before shouldWait is evaluated.
func TestAwaitStartsWhenWatchEnds(t *testing.T) {
	w, all := newTestWatcher("gateways", "services")
	assert.Nil(t, w.sources.waitChannel())
	all["gateways"].watchClosed()
	waits := w.sources.waitChannel()
	assert.NotNil(t, waits)

	seen := w.sources.currentVersion()
	all["services"].watchClosed()
	w.sources.setWaiting(seen, false)
	assert.Equal(t, waits, w.sources.waitChannel(), "a result for an older version is ignored")
	w.sources.setWaiting(w.sources.currentVersion(), false)
	<-waits
	assert.Nil(t, w.sources.waitChannel())
	w.sources.setWaiting(w.sources.currentVersion(), true)
	assert.NotNil(t, w.sources.waitChannel(), "after another change it may have to wait")
}

func TestAwaitAfterWatcherStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := newTestWatcher("gateways")
		ctx, cancel := context.WithCancel(t.Context())
		startUpdateWaiting(ctx, w)
		all["gateways"].watchClosed()
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		w.Await(t.Context())
		assert.Equal(t, time.Second, time.Since(start))
	})
}
