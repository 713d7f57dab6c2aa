package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/snapshot"
)

// newTestWatcher returns a Watcher of sources that are listed and have a watch.
func newTestWatcher(names ...string) (*Watcher, map[string]*healthTracker) {
	w, all := &Watcher{registry: &registry{}, stopped: make(chan struct{})}, map[string]*healthTracker{}
	for _, name := range names {
		c := newHealthTracker(name)
		c.changes = &w.changes
		c.watchOpened(false)
		c.recordList("1", 0)
		w.core = append(w.core, &reflector{source: name, health: c})
		all[name] = c
	}
	w.definitions = w.core[0]
	w.core = w.core[1:]
	return w, all
}

// await calls Await while the sources are checked, and returns how long it takes.
func await(ctx context.Context, w *Watcher) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			background.Sleep(ctx, checkInterval)
			w.changes.notify()
		}
	}()
	start := time.Now()
	w.Await(ctx)
	return time.Since(start)
}

func TestAwaitWhileWatchReconnects(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "")
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
				time.AfterFunc(2*time.Second, func() { of["gateways"].recordList("2", 0) })
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
				assert.InDelta(t, c.want, await(t.Context(), w), float64(checkInterval))
			})
		})
	}
}

func TestAwaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := newTestWatcher("gateways")
		all["gateways"].watchClosed()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Equal(t, time.Second, await(ctx, w))
	})
}

func TestAwaitIgnoresRemovedSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := newTestWatcher("customresourcedefinitions", "gateways")
		gateways := &watchedKind{reflector: w.core[0]}
		w.core, w.watched = nil, map[string]*watchedKind{"gateways": gateways}
		gateways.cancel, gateways.close, gateways.Definition = func() {}, func() {}, &snapshot.Definition{Name: "gateways"}
		all["gateways"].watchClosed()
		time.AfterFunc(time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.stopReflector(gateways)
		})
		assert.Equal(t, time.Second, await(t.Context(), w))
	})
}

func TestAwaitAfterWatcherStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := newTestWatcher("gateways")
		all["gateways"].watchClosed()
		time.AfterFunc(1300*time.Millisecond, func() { close(w.stopped) })
		assert.Equal(t, 1300*time.Millisecond, await(t.Context(), w))
	})
}
