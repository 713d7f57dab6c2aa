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

// watching is a Watcher of sources that are listed and have a watch.
func watching(names ...string) (*Watcher, map[string]*contact) {
	w, all := &Watcher{registry: &registry{}, peers: newPeers()}, map[string]*contact{}
	for _, name := range names {
		c := newContact(name)
		c.join(&w.peers)
		c.opened(false)
		c.list()
		w.core = append(w.core, &feed{source: name, contact: c})
		all[name] = c
	}
	w.definitions = w.core[0]
	w.core = w.core[1:]
	return w, all
}

// attending has a Watcher decide whether reviews wait.
func attending(ctx context.Context, w *Watcher) { go w.attend(ctx) }

func TestAReviewWaitsWhileAWatchIsOpenedAgain(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "")
	const patience = time.Minute
	for sentence, c := range map[string]struct {
		with func(map[string]*contact)
		want time.Duration
	}{
		"all are open": {with: func(map[string]*contact) {}},
		"one is open again after a while": {
			with: func(of map[string]*contact) {
				of["gateways"].closed()
				time.AfterFunc(time.Second, func() { of["gateways"].opened(false) })
			},
			want: time.Second,
		},
		"one opens, and another closes meanwhile": {
			with: func(of map[string]*contact) {
				of["gateways"].closed()
				time.AfterFunc(time.Second, func() { of["services"].closed() })
				time.AfterFunc(2*time.Second, func() { of["gateways"].opened(false) })
				time.AfterFunc(3*time.Second, func() { of["services"].opened(false) })
			},
			want: 3 * time.Second,
		},
		"one that lists first is open when it has": {
			with: func(of map[string]*contact) {
				of["gateways"].closed()
				time.AfterFunc(time.Second, func() { of["gateways"].opened(true) })
				time.AfterFunc(2*time.Second, func() { of["gateways"].list() })
			},
			want: 2 * time.Second,
		},
		"one that nobody answers for is too old in the end": {
			with: func(of map[string]*contact) { of["gateways"].closed(); of["gateways"].failed(errLost) },
			want: StaleAfter,
		},
		"a policy kind may not be read": {
			with: func(of map[string]*contact) {
				of["gateways"].health.Kind = colors
				of["gateways"].closed()
				of["gateways"].failed(errNoRight)
			},
		},
		"an API server that has just started lets nobody read": {
			with: func(of map[string]*contact) {
				of["gateways"].closed()
				of["gateways"].failed(errNoRight)
				time.AfterFunc(time.Second, func() { of["gateways"].opened(false) })
			},
			want: time.Second,
		},
		"one is not served any more": {
			with: func(of map[string]*contact) { of["gateways"].closed(); of["gateways"].failed(missing) },
		},
		"one is not served any more after a while": {
			with: func(of map[string]*contact) {
				of["gateways"].closed()
				time.AfterFunc(time.Second, func() { of["gateways"].failed(missing) })
			},
			want: time.Second,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, all := watching("customresourcedefinitions", "gateways", "services")
				attending(t.Context(), w)
				c.with(all)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				w.Await(ctx)
				assert.InDelta(t, c.want, time.Since(start), float64(time.Millisecond))
			})
		})
	}
}

func TestAReviewWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := watching("gateways")
		attending(t.Context(), w)
		all["gateways"].closed()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		w.Await(ctx)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestAReviewDoesNotWaitForWhatIsNotReadAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := watching("customresourcedefinitions", "gateways")
		gateways := &kind{feed: w.core[0]}
		w.core, w.registry.reading = nil, map[string]*kind{"gateways": gateways}
		attending(t.Context(), w)
		all["gateways"].closed()
		time.AfterFunc(time.Second, func() {
			w.registry.mu.Lock()
			defer w.registry.mu.Unlock()
			delete(w.registry.reading, "gateways")
			all["gateways"].leave()
		})
		start := time.Now()
		w.Await(t.Context())
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// A review that comes at the very moment waits, though no one has decided yet.
func TestAReviewWaitsFromTheMomentAtWhichAWatchEnds(t *testing.T) {
	w, all := watching("gateways", "services")
	assert.Nil(t, w.peers.reopening())
	all["gateways"].closed()
	waits := w.peers.reopening()
	assert.NotNil(t, waits)

	seen := w.peers.changes()
	all["services"].closed()
	w.peers.decide(seen, false)
	assert.Equal(t, waits, w.peers.reopening(), "what was found before the last change says nothing")
	w.peers.decide(w.peers.changes(), false)
	<-waits
	assert.Nil(t, w.peers.reopening())
	w.peers.decide(w.peers.changes(), true)
	assert.NotNil(t, w.peers.reopening(), "what it does not wait for may become what it waits for")
}

func TestNoReviewWaitsForAWatcherThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := watching("gateways")
		ctx, cancel := context.WithCancel(t.Context())
		attending(ctx, w)
		all["gateways"].closed()
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		w.Await(t.Context())
		assert.Equal(t, time.Second, time.Since(start))
	})
}
