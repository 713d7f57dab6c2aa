package watch

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
	w, all := &Watcher{registry: &registry{}}, map[string]*contact{}
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
		"one is not read any more": {
			with: func(of map[string]*contact) { of["gateways"].closed(); of["gateways"].leave() },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, all := watching("customresourcedefinitions", "gateways", "services")
				c.with(all)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				w.Await(ctx)
				assert.InDelta(t, c.want, time.Since(start), float64(glance))
			})
		})
	}
}

func TestAReviewWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, all := watching("gateways")
		all["gateways"].closed()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		w.Await(ctx)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestSourcesAreCountedWhileTheyAreBlind(t *testing.T) {
	w, all := watching("gateways", "services")
	for range 2 { // what is said twice counts once
		all["gateways"].closed()
		all["services"].closed()
	}
	assert.EqualValues(t, 2, w.peers.dark.Load())
	all["gateways"].opened(false)
	all["gateways"].opened(false)
	assert.EqualValues(t, 1, w.peers.dark.Load())
	all["services"].leave()
	all["services"].opened(false)
	assert.Zero(t, w.peers.dark.Load())
}
