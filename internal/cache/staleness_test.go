package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/messages"
)

var (
	colors         = api.PolicyKind{Group: "policies.example.com", Kind: "ColorPolicy"}
	errLost        = errors.New("connection refused")
	errUnconverted = apierrors.NewInternalError(errors.New("conversion webhook failed"))
	errBusy        = apierrors.NewTooManyRequests("busy", 1)
	errNoRight     = apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
)

func TestEvaluateStaleness(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	late, longAgo := now.Add(-StaleAfter), now.Add(-StaleAfter-time.Second)
	policies := SourceHealth{Source: "colorpolicies.policies.example.com", Kind: colors, Synced: true}
	blind := func(h SourceHealth, since time.Time, err error) SourceHealth {
		h.DisconnectedSince, h.Err = since, err
		return h
	}
	restored := func(h SourceHealth, at time.Time) SourceHealth {
		h.RestoredAt = at
		return h
	}
	gateways, routes := SourceHealth{Source: "gateways", Synced: true}, SourceHealth{Source: "httproutes", Synced: true}
	for sentence, c := range map[string]struct {
		sources      []SourceHealth
		whole, kinds string
	}{
		"all are connected":         {sources: []SourceHealth{policies, gateways, routes}},
		"failures of an open watch": {sources: []SourceHealth{blind(gateways, time.Time{}, errLost)}},
		"a short break":             {sources: []SourceHealth{blind(gateways, late, errLost)}},
		"a kind of Gateway API is disconnected": {
			sources: []SourceHealth{policies, blind(gateways, longAgo, errLost), routes},
			whole:   "gateways: watch disconnected for 11s: connection refused",
		},
		"all are disconnected": {
			sources: []SourceHealth{blind(policies, longAgo, errLost), blind(gateways, longAgo, nil), blind(routes, longAgo, errLost)},
			whole:   "gateways: watch disconnected for 11s (and 1 more resources)",
			kinds:   "colorpolicies.policies.example.com: watch disconnected for 11s: connection refused",
		},
		"a policy kind is forbidden": {
			sources: []SourceHealth{blind(policies, longAgo, errNoRight), gateways},
			kinds:   `colorpolicies.policies.example.com: watch disconnected for 11s: x is forbidden: no; `,
		},
		"a policy kind cannot be converted any more": {
			sources: []SourceHealth{blind(policies, longAgo, errUnconverted), gateways},
			kinds:   "colorpolicies.policies.example.com: watch disconnected for 11s: Internal error occurred: conversion webhook failed",
		},
		"an API server that is overloaded says so of all": {
			sources: []SourceHealth{blind(policies, longAgo, errBusy), blind(gateways, longAgo, errBusy)},
			whole:   "gateways: watch disconnected for 11s: busy",
			kinds:   "colorpolicies.policies.example.com: watch disconnected for 11s: busy",
		},
		"a policy kind whose watches end before they begin": {
			sources: []SourceHealth{blind(policies, longAgo, errConnectionCut), gateways},
			kinds: "colorpolicies.policies.example.com: watch disconnected for 11s: " +
				"connection closed before the watch started",
		},
		"a policy kind that is not listed again after a restore": {
			sources: []SourceHealth{restored(blind(policies, longAgo, errLost), late), gateways},
			whole:   "colorpolicies.policies.example.com: watch disconnected for 11s: connection refused",
		},
		"a policy kind that cannot be listed after a restore": {
			sources: []SourceHealth{restored(blind(policies, longAgo, errLost), now.Add(-restoredListTimeout-1)), gateways},
			kinds:   "colorpolicies.policies.example.com: watch disconnected for 11s: connection refused",
		},
		"gateways are forbidden": {
			sources: []SourceHealth{policies, blind(gateways, longAgo, errNoRight)},
			whole:   `gateways: watch disconnected for 11s: x is forbidden: no; `,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := evaluateStaleness(c.sources, now)
			assertStale(t, c.whole, g.err)
			assertStale(t, c.kinds, g.kinds[colors])
		})
	}
}

func assertStale(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		assert.NoError(t, err)
	} else {
		require.ErrorContains(t, err, want)
		messages.Golden(t, err.Error())
	}
}

// watcherOf is a Watcher of one resource of a fakeAPI.
func watcherOf(s *fakeAPI, log logr.Logger) *Watcher {
	st := snapshot.New()
	r := newRegistry(st, nil, Options{Log: log})
	w := &Watcher{registry: r, definitions: s.newReflector(st, log), restored: make(chan restore, 1)}
	w.definitions.health.onRestore, w.definitions.health.changes = w.noteRestore, &r.changes
	return w
}

// during runs the reflector and the supervision of a Watcher during a test.
func during(t *testing.T, w *Watcher, look func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { w.definitions.run(ctx); done <- struct{}{} }()
	go func() { w.supervise(ctx); done <- struct{}{} }()
	look()
	cancel()
	<-done
	<-done
}

var route = gateway.KindOf(gateway.KindHTTPRoute)

func TestLostWatchIsStaleUntilRelisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := newLogBuffer()
		s := &fakeAPI{watched: make(chan *watch.FakeWatcher)}
		s.answer(nil, *httpRoute("a"))
		w := watcherOf(s, log)
		assert.NoError(t, w.CheckFresh(route), "not stale before the first list")
		during(t, w, func() {
			first := <-s.watched
			time.Sleep(time.Minute)
			require.NoError(t, w.CheckFresh(route))

			s.failCalls(errLost)
			first.Stop()
			time.Sleep(StaleAfter - time.Second)
			require.NoError(t, w.CheckFresh(route), "not stale after some seconds")
			time.Sleep(2 * time.Second)
			require.ErrorIs(t, w.CheckFresh(route), errLost)
			require.ErrorContains(t, w.StaleError(), "httproutes: watch disconnected for 1")
			assert.Contains(t, lines.String(), "cache is stale")

			s.failCalls(nil)
			s.answer(nil, *httpRoute("b"))
			<-s.watched
			time.Sleep(time.Second)
			require.NoError(t, w.CheckFresh(route))
			assert.Equal(t, map[string][]string{"app/b": nil}, storedRoutes(w.store), "missed changes arrived")
			assert.Equal(t, uint64(2), w.definitions.health.get().Lists)
			assert.Contains(t, lines.String(), "cache is up to date again")
		})
	})
}

func TestRegularWatchEndIsNotStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := newLogBuffer()
		s := &fakeAPI{watched: make(chan *watch.FakeWatcher)}
		s.answer(nil, *httpRoute("a"))
		w := watcherOf(s, log)
		during(t, w, func() {
			for range 20 {
				open := <-s.watched
				time.Sleep(time.Minute)
				open.Modify(httpRoute("a"))
				time.Sleep(time.Minute)
				open.Stop()
				synctest.Wait()
				require.NoError(t, w.CheckFresh(route))
			}
			<-s.watched
		})
		assert.Equal(t, uint64(1), w.definitions.health.get().Lists)
		assert.Zero(t, w.definitions.health.get().Failures)
		assert.NotContains(t, lines.String(), "cache is stale")
	})
}

func TestSilentWatchIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := newLogBuffer()
		s := &fakeAPI{watched: make(chan *watch.FakeWatcher)}
		s.answer(nil, *httpRoute("a"))
		w := watcherOf(s, log)
		during(t, w, func() {
			first := <-s.watched
			time.Sleep(silenceTimeout - time.Second)
			require.False(t, first.IsStopped())
			time.Sleep(2 * time.Second)
			assert.True(t, first.IsStopped())
			second := <-s.watched
			require.NoError(t, w.CheckFresh(route))
			time.Sleep(time.Second)
			require.NoError(t, w.CheckFresh(route))
			assert.False(t, second.IsStopped())
			assert.Contains(t, lines.String(), "no event or bookmark received")
		})
	})
}

func TestSuspendedProcessRestartsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPI{watched: make(chan *watch.FakeWatcher)}
		s.answer(nil, *httpRoute("a"))
		w := watcherOf(s, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.definitions.run(ctx); close(done) }()
		<-s.watched
		synctest.Wait()
		w.checkSources(time.Now())
		require.NoError(t, w.CheckFresh(route))

		time.Sleep(StaleAfter + time.Second) // no checks happen
		s.answer(nil, *httpRoute("b"))
		require.ErrorIs(t, w.CheckFresh(route), errSuspended, "changes in the meantime may not have been read")
		require.ErrorContains(t, w.StaleError(), "watches not checked for 11s")
		w.checkSources(time.Now())
		require.ErrorContains(t, w.CheckFresh(route), "httproutes: watch disconnected for 10s: process was suspended")

		<-s.watched
		synctest.Wait()
		w.checkSources(time.Now())
		require.NoError(t, w.CheckFresh(route))
		assert.Equal(t, map[string][]string{"app/b": nil}, storedRoutes(w.store))
		cancel()
		<-done
	})
}

func TestForbiddenKindIsReported(t *testing.T) {
	w := watcherOf(&fakeAPI{}, logr.Discard())
	require.NoError(t, w.UnreadableKindsError(), "nothing was checked yet")
	w.checkSources(time.Now())
	require.NoError(t, w.UnreadableKindsError())

	policies := (&fakeAPI{}).newReflector(snapshot.New(), logr.Discard())
	policy := policykind.BuiltinKind(api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"})
	policies.health.health = SourceHealth{Source: "colorpolicies", Kind: policy.Ref(), Synced: true, DisconnectedSince: time.Now().Add(-time.Minute), Err: errNoRight}
	w.watched["colorpolicies"] = &watchedKind{Definition: &snapshot.Definition{}, reflector: policies, policy: policy}
	w.checkSources(time.Now())
	require.ErrorContains(t, w.UnreadableKindsError(), "colorpolicies: watch disconnected for 1m0s: ")
	require.ErrorIs(t, w.CheckFresh(policy.Ref()), errNoRight)
	assert.NoError(t, w.CheckFresh(route), "other kinds are evaluated")
	assert.NoError(t, w.StaleError())
}

func TestUnconvertibleKindIsNotAwaitedAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := snapshot.New(sourcePolicies)
		r := newRegistry(st, nil, Options{})
		kinds := policykind.BuiltinKinds()
		broken := &watchedKind{Definition: &snapshot.Definition{Name: "colors"}, policy: kinds[0], reflector: &reflector{health: newHealthTracker("colors")}}
		r.watched["colors"], r.unsynced["colors"], r.profilesListed = broken, true, true
		look := func() bool {
			r.markUnlistable(time.Now())
			_, ready := st.View()
			return ready
		}

		assert.False(t, look())
		broken.health.recordFailure(errUnconverted)
		time.Sleep(initialListTimeout)
		assert.False(t, look(), "it may be listed soon")
		time.Sleep(time.Second)
		assert.True(t, look())
		assert.ErrorContains(t, r.problems["colors"], "conversion webhook failed; ")
		messages.Golden(t, r.problems["colors"].Error())
		w := &Watcher{registry: r, definitions: &reflector{health: newHealthTracker(sourceDefinitions)}}
		assert.NoError(t, w.UnreadableKindsError())
		w.checkSources(time.Now())
		assert.EqualError(t, w.UnreadableKindsError(), "read colors: "+r.problems["colors"].Error())

		r.markListed(broken)
		assert.Empty(t, r.problems)
		assert.NoError(t, w.UnreadableKindsError())
	})
}
