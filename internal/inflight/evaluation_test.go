package inflight

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

const (
	ofLimit = "the pending write of Paint infra/limit"
	unseen  = ", not yet in the cache; retry in 1s)"
)

func with(what string) []string {
	return []string{"Retry " + clipped + " (together with " + what + unseen}
}

func without(what string) []string {
	return []string{"Retry " + clipped + " (without " + what + unseen}
}

func TestWritesInFlight(t *testing.T) {
	loose := worlds.PolicyDoc("Paint", "infra", "limit", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]")
	elsewhere := worlds.PolicyDoc("Paint", "infra", "limit", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: other}]\n"+
		"overrides: {strategy: patch, when: 'spec.a > 50', a: 50}")
	for name, c := range map[string]struct {
		known  []string
		before func(*harness)
		write  func(*harness) Write
		want   []string
	}{
		"that breaks something together with a write makes it wait": {
			[]string{gatewayGroup, route},
			func(s *harness) { s.admit(s.create(limit)) },
			func(s *harness) Write { return s.create(greedy) }, with(ofLimit),
		},
		"that is of another object of the same paths and breaks nothing does not": {
			[]string{gatewayGroup, route},
			func(s *harness) { s.admit(s.create(limit)) },
			func(s *harness) Write { return s.create(modest) }, nil,
		},
		"that is on other paths is no matter": {
			[]string{gatewayGroup, route, worlds.GatewayDoc("other", "class", "http")},
			func(s *harness) { s.admit(s.create(elsewhere)) },
			func(s *harness) Write { return s.create(greedy) }, nil,
		},
		"that was denied is not there": {
			[]string{gatewayGroup, route, limit},
			func(s *harness) { assert.NotEmpty(s, denials(s.evaluate(s.create(greedy)))) },
			func(s *harness) Write { return s.create(onRoute("other", "a: 100")) },
			[]string{clipped},
		},
		"that was a dry run is not there": {
			[]string{gatewayGroup, route},
			func(s *harness) {
				w := s.create(limit)
				w.DryRun = true
				s.admit(w)
			},
			func(s *harness) Write { return s.create(greedy) }, nil,
		},
		"holds for a dry run, too": {
			[]string{gatewayGroup, route},
			func(s *harness) { s.admit(s.create(limit)) },
			func(s *harness) Write {
				w := s.create(greedy)
				w.DryRun = true
				return w
			}, with(ofLimit),
		},
		"that changes nothing is not kept": {
			[]string{gatewayGroup, route, limit},
			func(s *harness) {
				s.admit(s.update(limit, limit))
				s.admit(s.update(route, route))
				s.admit(s.update(gatewayGroup, gatewayGroup))
				assert.Zero(s, s.log.Len())
			},
			func(s *harness) Write { return s.create(modest) }, nil,
		},
		"that was denied and admitted all the same is kept": {
			[]string{gatewayGroup, route},
			func(s *harness) {
				s.put(limit)
				w := s.create(greedy)
				w.Enforcement = guard.EnforceWarn
				assert.Equal(s, []string{clipped}, denials(s.evaluate(w)))
				assert.Equal(s, 1, s.log.Len())
			},
			func(s *harness) Write { return s.create(modest) }, nil,
		},
		"does not matter where nothing is denied": {
			[]string{gatewayGroup, route},
			func(s *harness) { s.admit(s.create(limit)) },
			func(s *harness) Write {
				w := s.create(greedy)
				w.Enforcement = guard.EnforceAudit
				return w
			}, nil,
		},
		"may be what makes a write right": {
			[]string{gatewayGroup, route, limit},
			func(s *harness) { s.admit(s.update(limit, loose)) },
			func(s *harness) Write { return s.create(greedy) },
			without(ofLimit),
		},
		"may be a deletion": {
			[]string{gatewayGroup, route, limit},
			func(s *harness) { s.admit(s.remove(limit)) },
			func(s *harness) Write { return s.create(greedy) },
			without(ofLimit),
		},
		"counts in every combination": {
			[]string{gatewayGroup},
			func(s *harness) {
				s.admit(s.create(limit))
				s.admit(s.create(route))
			},
			func(s *harness) Write { return s.create(greedy) },
			with("the pending writes of Paint infra/limit, HTTPRoute app/r"),
		},
		"may be deleted and created again": {
			[]string{gatewayGroup, route, loose},
			func(s *harness) {
				s.admit(s.remove(loose))
				s.admit(s.create(limit))
			},
			func(s *harness) Write { return s.create(greedy) },
			with("the pending writes of Paint infra/limit, Paint infra/limit"),
		},
		"of the same object is what its own write says": {
			[]string{gatewayGroup, route, limit},
			func(s *harness) { s.admit(s.create(modest)) },
			func(s *harness) Write { return s.update(modest, onRoute("modest", "a: 20")) }, nil,
		},
		"and creates what there is will not be stored": {
			[]string{gatewayGroup, route, modest},
			func(s *harness) {
				s.admit(s.create(limit))
				s.put(loose) // another one was faster
			},
			func(s *harness) Write { return s.create(greedy) }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, Options{}, c.known...)
			c.before(s)
			assert.Equal(t, c.want, denials(s.evaluate(c.write(s))))
		})
	}
}

// A write that is admitted while another is evaluated may connect it with what was in
// flight before.
func TestConcurrentWriteConnectsOthers(t *testing.T) {
	away := worlds.RouteDoc("r", "[{}]", "other")
	s := newHarness(t, Options{}, gatewayGroup, worlds.GatewayDoc("other", "class", "http"), away)
	s.admit(s.create(greedy))
	looks := 0
	s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
		if looks++; looks == 1 {
			s.admit(s.update(away, route))
		}
		return nil, nil
	}
	s.admit(s.create(worlds.PolicyDoc("Paint", "infra", "limit", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}, "+
		"{group: gateway.networking.k8s.io, kind: Gateway, name: nowhere}]\nb: 1")))
	assert.Greater(t, looks, 4, "it was evaluated again: alone, with each of both, and with both")
}

// A write is evaluated at a moment at which all related writes are known.
func TestConcurrentWriteCounts(t *testing.T) {
	nowhere := worlds.PolicyDoc("Paint", "app", "greedy", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, "+
		"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]\na: 100")
	for name, c := range map[string]struct {
		meanwhile func(*harness)
		want      []string
		looks     int
	}{
		"and not seen": {func(s *harness) { s.admit(s.create(limit)) }, with(ofLimit), 3},
		"and seen, too": {
			func(s *harness) {
				s.admit(s.create(limit))
				s.observe(limit, "11")
				assert.Zero(s, s.log.Len())
			}, []string{clipped}, 2,
		},
		"and of other paths": {func(s *harness) { s.admit(s.create(worlds.GatewayDoc("other", "class", "http"))) }, nil, 1},
		"and denied": {func(s *harness) {
			assert.NotEmpty(s, denials(s.evaluate(s.create(onRoute("x", "overrides: {when: '1 +', a: 1}")))))
		}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, Options{}, gatewayGroup, route)
			looks := 0
			s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
				if looks++; looks == 1 {
					c.meanwhile(s)
				}
				return nil, nil
			}
			assert.Equal(t, c.want, denials(s.evaluate(s.create(nowhere))))
			assert.Equal(t, c.looks, looks, "evaluations")
		})
	}
}

func TestWritesOfSameObjectAreUnrelated(t *testing.T) {
	nowhere := func(value string) string {
		return worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]\na: "+value)
	}
	s := newHarness(t, Options{}, gatewayGroup, route)
	looks := 0
	s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
		if looks++; looks == 2 {
			s.admit(s.update(nowhere("1"), nowhere("3")))
		}
		return nil, nil
	}
	s.admit(s.create(nowhere("1")))
	s.admit(s.update(nowhere("1"), nowhere("2")))
	assert.Equal(t, 3, looks, "each is evaluated once")
	assert.Equal(t, 3, s.log.Len())
}

// Whether two writes meet may hang on a third that came later.
func TestRelatedGrowsWithOthers(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup)
	onService := worlds.PolicyDoc("Paint", "app", "behind", "targetRefs: [{group: '', kind: Service, name: s}]\na: 1")
	s.admit(s.create(onService))
	assert.Empty(t, s.met(s.create(limit)))
	s.admit(s.create(worlds.RouteDoc("r", "[{backendRefs: [{name: s, port: 80}]}]", "edge")))
	assert.Equal(t, []string{"Paint app/behind", "HTTPRoute app/r"}, s.met(s.create(limit)))
}

func TestStoredWriteIsNotTracked(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup, route)
	nowhere := worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]")
	s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
		s.observe(nowhere, "11") // the API server's timeout was over, and failurePolicy is Ignore
		return nil, nil
	}
	s.admit(s.create(nowhere))
	assert.Zero(t, s.log.Len())
	assert.Empty(t, s.log.perObject, "nothing is left behind")
	assert.Zero(t, s.log.busy.Load())
}

func TestWaitForRelatedWrites(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*harness)
		want    []string
	}{
		"and is denied once they are seen":            {func(s *harness) { s.observe(limit, "11") }, []string{clipped}},
		"and is allowed once they are seen elsewhere": {func(s *harness) { s.observe(worlds.PolicyDoc("Paint", "infra", "limit", "b: 1"), "11") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, Options{MaxWait: time.Hour}, gatewayGroup, route)
			s.admit(s.create(limit))
			done := make(chan []string)
			go func() {
				d, err := s.log.Evaluate(t.Context(), s.guard, s.view, s.create(greedy))
				assert.NoError(t, err)
				done <- denials(d)
			}()
			s.admit(s.create(worlds.GatewayDoc("other", "class", "http")))
			s.observe(worlds.GatewayDoc("other", "class", "http"), "11") // is no reason to look again
			c.happens(s)
			assert.Equal(t, c.want, <-done)
		})
	}
}

func TestWaitForManyRelatedWrites(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup, route)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.admit(s.create(onRoute(name, "b: 1")))
	}
	s.log.Options.MaxWait = time.Hour
	views := make(chan struct{}, 10)
	done := make(chan []string)
	go func() {
		view := func() *snapshot.View {
			views <- struct{}{}
			return s.view()
		}
		d, err := s.log.Evaluate(t.Context(), s.guard, view, s.create(modest))
		assert.NoError(t, err)
		done <- denials(d)
	}()
	<-views
	<-views // it has looked, and met five
	s.observe(onRoute("a", "b: 1"), "11")
	s.observe(onRoute("b", "b: 1"), "12")
	assert.Empty(t, <-done)
	assert.Len(t, views, 3, "it looked once more, and was booked")
}

func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, Options{MaxWait: time.Hour}, gatewayGroup, route)
		s.admit(s.create(limit))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		d, err := s.log.Evaluate(ctx, s.guard, s.view, s.create(greedy))
		require.NoError(t, err)
		assert.Equal(t, with(ofLimit), denials(d))
		require.NoError(t, ctx.Err(), "half of it is left")
	})
}

func TestContendedWriteIsRetried(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup, route)
	ctx, cancel := context.WithCancel(t.Context())
	nowhere := worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, {group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]")
	rounds := 0
	s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
		if rounds++; rounds == 3 {
			cancel()
		}
		doc := onRoute("q"+string(rune('a'+rounds)), "b: 1")
		s.admit(s.create(doc))
		s.observe(doc, "11")
		return nil, nil
	}
	d, err := s.log.Evaluate(ctx, s.guard, s.view, s.create(nowhere))
	require.NoError(t, err)
	assert.Equal(t, []string{"Retry TooMuch: writes that affect the same paths were admitted faster than this one could be evaluated"}, denials(d))
	assert.Equal(t, 3, rounds)
}

func TestExpiredWriteIsNotTracked(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup, route)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := s.create(worlds.GatewayDoc("other", "class", "http")) // without a path, so that nothing takes time
	_, err := s.log.Evaluate(ctx, s.guard, s.view, w)
	require.ErrorIs(t, err, context.Canceled, "it is not admitted")
	assert.Zero(t, s.log.Len())
	s.admit(w)
	assert.Equal(t, 1, s.log.Len())
}

func TestNilLog(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup, route, limit)
	var l *Log
	d, err := l.Evaluate(t.Context(), s.guard, s.view, s.create(greedy))
	require.NoError(t, err)
	assert.Equal(t, []string{clipped}, denials(d))
	assert.Zero(t, l.Len())
}

var errLive = errors.New("no answer")

func TestEvaluationError(t *testing.T) {
	nowhere := worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, {group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]")
	for name, c := range map[string]struct {
		inFlight []string
		failing  int // which evaluation fails
	}{
		"by itself":                        {nil, 1},
		"with what is in flight laid over": {[]string{modest}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, Options{}, gatewayGroup, route)
			for _, doc := range c.inFlight {
				s.admit(s.create(doc))
			}
			asked := 0
			s.guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
				if asked++; asked == c.failing {
					return nil, errLive
				}
				return nil, nil
			}
			_, err := s.log.Evaluate(t.Context(), s.guard, s.view, s.create(nowhere))
			require.ErrorIs(t, err, errLive)
			assert.Equal(t, len(c.inFlight), s.log.Len(), "it is not kept")
		})
	}
}

func TestProfileInFlight(t *testing.T) {
	other := &policykind.Profile{PolicyProfile: api.PolicyProfile{Spec: api.PolicyProfileSpec{
		Group: worlds.Group, Kind: "Other", Class: api.Inherited, Targets: api.ProfileTargets{Fields: []string{"targetRef"}},
	}}}
	of := func(c guard.Change) Write {
		return Write{Change: c, Precondition: func() Precondition { return Precondition{UID: "p"} }}
	}
	write := of(guard.Change{Operation: guard.Create, After: other})
	// edited is an update of the profile of Paint.
	edited := func(s *harness, edit func(*api.PolicyProfileSpec)) Write {
		paint := s.view().KindConfig().Profile("paint")
		next := *paint
		edit(&next.Spec)
		return of(guard.Change{Operation: guard.Update, Before: paint, After: &next})
	}
	paint := api.PolicyKind{Group: worlds.Group, Kind: "Paint"}

	t.Run("that may take an override out of force that is in flight itself", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.guard.Permissions = nil
		s.admit(s.create(limit))
		d := s.evaluate(edited(s, func(p *api.PolicyProfileSpec) {
			p.Actions = map[api.ReasonCode]api.Action{api.ReasonOverrideRemoved: api.Warn}
		}))
		assert.True(t, d.Decision.Denied())
		assert.True(t, d.Retry)
	})
	t.Run("by which it is not known what policies say", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.guard.Permissions = nil
		w := edited(s, func(p *api.PolicyProfileSpec) { p.Unset = nil })
		s.admit(w)
		var unlisted *guard.UnlistedKindError
		stored := slices.Collect(s.view().Objects(gateway.KindOf(gateway.KindHTTPRoute)))[0]
		deletion := Write{Change: guard.Change{Operation: guard.Delete, Before: stored}, Precondition: write.Precondition}
		_, err := s.log.Evaluate(t.Context(), s.guard, s.view, deletion)
		require.ErrorAs(t, err, &unlisted)
		s.store.Observe(snapshot.Observation{Ref: w.Change.After.Ref(), UID: "p", Version: "5"})
		assert.Empty(t, denials(s.evaluate(deletion)), "it is observed")
	})
	t.Run("whose last finalizer is taken off, which ends it", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		l := overlay{view: s.view()}
		finalized := edited(s, func(*api.PolicyProfileSpec) {})
		finalized.Finalized = true
		require.NoError(t, l.apply(finalized))
		assert.Nil(t, l.flush().KindConfig().Of(paint))
	})
	t.Run("and a policy of its kind", func(t *testing.T) {
		own := *other
		own.Name, own.Spec.Kind = "own", "Paint"
		change := of(guard.Change{Operation: guard.Create, After: &own})

		s := newHarness(t, Options{}, gatewayGroup, route)
		s.admit(change)
		assert.Equal(t, []string{"Retry TooMuch: Paint app/greedy: the PolicyProfile or CustomResourceDefinition of this kind has just changed"},
			denials(s.evaluate(s.create(greedy))))

		s = newHarness(t, Options{}, gatewayGroup, route)
		s.admit(s.create(greedy))
		assert.Equal(t, []string{"Retry TooMuch: PolicyProfile own: policies of its kind are being written"}, denials(s.evaluate(change)))
		s.observe(greedy, "12")
		assert.Empty(t, denials(s.evaluate(change)))
	})
	t.Run("until its kind is listed again", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.admit(write)
		s.store.AddKind(&policykind.Kind{PolicyProfileSpec: other.Spec})
		s.store.Observe(snapshot.Observation{Ref: other.Ref(), UID: "p", Version: "5"})
		assert.Equal(t, 1, s.log.Len(), "the view does not have it")
		assert.Equal(t, []string{"Retry TooMuch: Paint app/greedy: the PolicyProfile or CustomResourceDefinition of this kind has just changed"},
			denials(s.evaluate(s.create(greedy))))
		s.store.KindListed(api.PolicyKind{Group: worlds.Group, Kind: "Other"})
		assert.Zero(t, s.log.Len())
		assert.Empty(t, s.log.relisting)
		assert.Empty(t, denials(s.evaluate(s.create(greedy))))
	})
	t.Run("unless it defines a kind that another one defines", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		defined := func(name string) *policykind.Definition {
			d := &policykind.Definition{}
			d.Name, d.Spec.Group, d.Spec.Names.Kind = name+"."+worlds.Group, worlds.Group, "Paint"
			return d
		}
		v := s.view()
		l := overlay{view: v.WithKindConfig(v.KindConfig().With(snapshot.Put(defined("paints"))))}
		require.NoError(t, l.apply(of(guard.Change{Operation: guard.Create, After: defined("others")})))
		assert.Nil(t, l.flush().KindConfig().DefinitionNamed("others."+worlds.Group))
	})
}

func TestChangedKind(t *testing.T) {
	reread := func(s *harness) {
		k := worlds.World(s, route).Kind(api.PolicyKind{Group: worlds.Group, Kind: "Paint"})
		s.store.AddKind(k)
		s.store.KindListed(k.Ref())
	}
	t.Run("a write of the old way is to be tried again", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		w := s.create(greedy)
		reread(s)
		d := s.evaluate(w)
		assert.Equal(t, []string{"Retry TooMuch: Paint app/greedy: the PolicyProfile or CustomResourceDefinition of this kind has just changed"}, denials(d))
	})
	t.Run("one whose kind is read again at this moment is evaluated by the reading that the view has", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route, limit)
		w := s.create(greedy)
		s.store.AddKind(worlds.World(s, route).Kind(api.PolicyKind{Group: worlds.Group, Kind: "Paint"}))
		assert.Equal(t, []string{clipped}, denials(s.evaluate(w)))
	})
	t.Run("so is one that meets such a write in flight", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.admit(s.create(limit))
		reread(s)
		d := s.evaluate(s.create(greedy))
		assert.Equal(t, []string{"Retry TooMuch: Paint infra/limit: the PolicyProfile or CustomResourceDefinition of this kind has just changed"}, denials(d))
	})
	t.Run("a kind that is not read any more is no matter", func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.admit(s.create(limit))
		s.store.RemoveKind(api.PolicyKind{Group: worlds.Group, Kind: "Paint"})
		s.admit(s.update(route, worlds.RouteDoc("r", "[{name: x}]", "edge")))
	})
}

func TestDeletedNamespaceInFlight(t *testing.T) {
	namespace := "kind: Namespace\nmetadata: {name: infra}"
	s := newHarness(t, Options{}, namespace, gatewayGroup, route, limit)
	s.admit(s.remove(namespace))
	assert.True(t, worlds.Overlap(s.remove(namespace).footprint(s.view()), s.create(modest).footprint()), "also on what is elsewhere")
	assert.Equal(t, without("the pending write of Namespace infra"), denials(s.evaluate(s.create(greedy))))
}

func TestSubsets(t *testing.T) {
	all := []*entry{{seq: 1}, {seq: 2}, {seq: 3}, {seq: 4}}
	for n, want := range [][][]uint64{
		nil,
		{{1}},
		{{1}, {2}, {1, 2}},
		{{1}, {2}, {3}, {1, 2}, {1, 3}, {2, 3}, {1, 2, 3}},
		{{1}, {2}, {3}, {4}, {1, 2, 3, 4}},
	} {
		var got [][]uint64
		for _, some := range subsets(all[:n]) {
			var seqs []uint64
			for _, e := range some {
				seqs = append(seqs, e.seq)
			}
			got = append(got, seqs)
		}
		assert.Equal(t, want, got)
	}
}

func TestMessageNamesAtMostThreeWrites(t *testing.T) {
	d := explain("together with", []guard.Finding{{What: "no", Short: "n"}}, []*entry{
		{ref: api.Ref{Kind: "A", Name: "a"}}, {ref: api.Ref{Kind: "B", Name: "b"}},
		{ref: api.Ref{Kind: "C", Name: "c"}}, {ref: api.Ref{Kind: "D", Name: "d"}}, {},
	})
	assert.Equal(t, []guard.Finding{{
		What:  "no (together with the pending writes of A a, B b, C c and 2 more" + unseen,
		Short: "n (together with a pending write)",
	}}, d)
}

// Many writers at once, for the race detector; none is admitted beside what it
// breaks something with.
func TestManyWritersAtOnce(t *testing.T) {
	for round := range 20 {
		s := newHarness(t, Options{}, gatewayGroup, route)
		writes := []Write{s.create(limit), s.create(greedy), s.create(modest), s.create(worlds.GatewayDoc("other", "class", "http"))}
		allowed := make(chan string, len(writes))
		for _, w := range writes {
			go func() {
				d, err := s.log.Evaluate(context.Background(), s.guard, s.view, w)
				if assert.NoError(t, err) && len(d.Decision.Denials) == 0 {
					allowed <- w.Change.After.Ref().Name
					return
				}
				allowed <- ""
			}()
		}
		names := make(map[string]bool)
		for range writes {
			names[<-allowed] = true
		}
		assert.True(t, names["limit"] && names["modest"] && names["other"], "round %d: %v", round, names)
	}
}
