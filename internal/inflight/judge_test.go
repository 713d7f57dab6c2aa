package inflight

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

const (
	ofLimit = "the write of Paint infra/limit"
	unseen  = ", admitted a moment ago and not seen in the cache yet: try again in a second)"
)

func with(what string) []string {
	return []string{"Retry " + clipped + " (together with " + what + unseen}
}

func without(what string) []string {
	return []string{"Retry " + clipped + " (without " + what + unseen}
}

func TestWhatIsInFlight(t *testing.T) {
	loose := worlds.PolicyDoc("Paint", "infra", "limit", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]")
	elsewhere := worlds.PolicyDoc("Paint", "infra", "limit", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: other}]\n"+
		"overrides: {strategy: patch, when: 'spec.a > 50', a: 50}")
	for name, c := range map[string]struct {
		known  []string
		before func(*sky)
		write  func(*sky) Write
		want   []string
	}{
		"that breaks something together with a write makes it wait": {
			[]string{gatewayGroup, route},
			func(s *sky) { s.admit(s.create(limit)) },
			func(s *sky) Write { return s.create(greedy) }, with(ofLimit),
		},
		"that is of another object of the same paths and breaks nothing does not": {
			[]string{gatewayGroup, route},
			func(s *sky) { s.admit(s.create(limit)) },
			func(s *sky) Write { return s.create(modest) }, nil,
		},
		"that is on other paths is no matter": {
			[]string{gatewayGroup, route, worlds.GatewayDoc("other", "class", "http")},
			func(s *sky) { s.admit(s.create(elsewhere)) },
			func(s *sky) Write { return s.create(greedy) }, nil,
		},
		"that was denied is not there": {
			[]string{gatewayGroup, route, limit},
			func(s *sky) { assert.NotEmpty(s, said(s.judge(s.create(greedy)))) },
			func(s *sky) Write { return s.create(onRoute("other", "a: 100")) },
			[]string{clipped},
		},
		"that was a dry run is not there": {
			[]string{gatewayGroup, route},
			func(s *sky) {
				w := s.create(limit)
				w.DryRun = true
				s.admit(w)
			},
			func(s *sky) Write { return s.create(greedy) }, nil,
		},
		"holds for a dry run, too": {
			[]string{gatewayGroup, route},
			func(s *sky) { s.admit(s.create(limit)) },
			func(s *sky) Write {
				w := s.create(greedy)
				w.DryRun = true
				return w
			}, with(ofLimit),
		},
		"that changes nothing is not kept": {
			[]string{gatewayGroup, route, limit},
			func(s *sky) {
				s.admit(s.update(limit, limit))
				s.admit(s.update(route, route))
				s.admit(s.update(gatewayGroup, gatewayGroup))
				assert.Zero(s, s.log.Len())
			},
			func(s *sky) Write { return s.create(modest) }, nil,
		},
		"that was denied and admitted all the same is kept": {
			[]string{gatewayGroup, route},
			func(s *sky) {
				s.put(limit)
				w := s.create(greedy)
				w.Enforcement = guard.EnforceWarn
				assert.Equal(s, []string{clipped}, said(s.judge(w)))
				assert.Equal(s, 1, s.log.Len())
			},
			func(s *sky) Write { return s.create(modest) }, nil,
		},
		"does not matter where nothing is denied": {
			[]string{gatewayGroup, route},
			func(s *sky) { s.admit(s.create(limit)) },
			func(s *sky) Write {
				w := s.create(greedy)
				w.Enforcement = guard.EnforceAudit
				return w
			}, nil,
		},
		"may be what makes a write right": {
			[]string{gatewayGroup, route, limit},
			func(s *sky) { s.admit(s.update(limit, loose)) },
			func(s *sky) Write { return s.create(greedy) },
			without(ofLimit),
		},
		"may be a deletion": {
			[]string{gatewayGroup, route, limit},
			func(s *sky) { s.admit(s.remove(limit)) },
			func(s *sky) Write { return s.create(greedy) },
			without(ofLimit),
		},
		"counts in every combination": {
			[]string{gatewayGroup},
			func(s *sky) {
				s.admit(s.create(limit))
				s.admit(s.create(route))
			},
			func(s *sky) Write { return s.create(greedy) },
			with("the writes of Paint infra/limit, HTTPRoute app/r"),
		},
		"may be deleted and created anew": {
			[]string{gatewayGroup, route, loose},
			func(s *sky) {
				s.admit(s.remove(loose))
				s.admit(s.create(limit))
			},
			func(s *sky) Write { return s.create(greedy) },
			with("the writes of Paint infra/limit, Paint infra/limit"),
		},
		"of the same object is what its own write says": {
			[]string{gatewayGroup, route, limit},
			func(s *sky) { s.admit(s.create(modest)) },
			func(s *sky) Write { return s.update(modest, onRoute("modest", "a: 20")) }, nil,
		},
		"and creates what there is will not be stored": {
			[]string{gatewayGroup, route, modest},
			func(s *sky) {
				s.admit(s.create(limit))
				s.put(loose) // another one was faster
			},
			func(s *sky) Write { return s.create(greedy) }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSky(t, Options{}, c.known...)
			c.before(s)
			assert.Equal(t, c.want, said(s.judge(c.write(s))))
		})
	}
}

// Whether a write meets others depends on nothing that another one left behind: not
// on a dry run of an object in between, nor on another write of that object.
func TestWhatAWriteMeetsDependsOnNoOther(t *testing.T) {
	away := worlds.RouteDoc("r", "[{}]", "other")
	for name, between := range map[string]func(*sky){
		"nothing": func(*sky) {},
		"a dry run of the object that brings them together": func(s *sky) {
			w := s.update(away, worlds.RouteDoc("r", "[{name: dry}]", "other"))
			w.DryRun = true
			s.admit(w)
		},
		"a dry run of another one": func(s *sky) {
			w := s.create(worlds.RouteDoc("q", "[{}]", "edge"))
			w.DryRun = true
			s.admit(w)
		},
		"another write of it, which may not be stored": func(s *sky) {
			s.admit(s.update(away, worlds.RouteDoc("r", "[{name: x}]", "other")))
		},
		"its event": func(s *sky) { s.seen(route, "11") },
		"an event of another object": func(s *sky) {
			s.seen(worlds.RouteDoc("q", "[{}]", "edge"), "11")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSky(t, Options{}, gatewayGroup, worlds.GatewayDoc("other", "class", "http"), away)
			s.admit(s.update(away, route))
			s.admit(s.create(greedy))
			between(s)
			assert.Contains(t, s.met(s.create(limit)), "Paint app/greedy")
		})
	}
}

// What is admitted while a write is judged may bring it together with what was in
// flight before.
func TestAWriteThatIsAdmittedMeanwhileBringsOthersTogether(t *testing.T) {
	away := worlds.RouteDoc("r", "[{}]", "other")
	s := newSky(t, Options{}, gatewayGroup, worlds.GatewayDoc("other", "class", "http"), away)
	s.admit(s.create(greedy))
	looks := 0
	s.guard.Live = func(context.Context, api.Ref) (snapshot.Object, error) {
		if looks++; looks == 1 {
			s.admit(s.update(away, route))
		}
		return nil, nil
	}
	s.admit(s.create(worlds.PolicyDoc("Paint", "infra", "limit", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}, "+
		"{group: gateway.networking.k8s.io, kind: Gateway, name: nowhere}]\nb: 1")))
	assert.Greater(t, looks, 4, "it was judged again: alone, with each of both, and with both")
}

// A write is judged by a moment at which nothing that matters is unknown.
func TestAWriteThatIsAdmittedWhileAnotherIsJudgedCounts(t *testing.T) {
	nowhere := worlds.PolicyDoc("Paint", "app", "greedy", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, "+
		"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]\na: 100")
	for name, c := range map[string]struct {
		meanwhile func(*sky)
		want      []string
		looks     int
	}{
		"and not seen": {func(s *sky) { s.admit(s.create(limit)) }, with(ofLimit), 3},
		"and seen, too": {
			func(s *sky) {
				s.admit(s.create(limit))
				s.seen(limit, "11")
				assert.Zero(s, s.log.Len())
			}, []string{clipped}, 2,
		},
		"and of other paths": {func(s *sky) { s.admit(s.create(worlds.GatewayDoc("other", "class", "http"))) }, nil, 1},
		"and denied": {func(s *sky) {
			assert.NotEmpty(s, said(s.judge(s.create(onRoute("x", "overrides: {when: '1 +', a: 1}")))))
		}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSky(t, Options{}, gatewayGroup, route)
			looks := 0
			s.guard.Live = func(context.Context, api.Ref) (snapshot.Object, error) {
				if looks++; looks == 1 {
					c.meanwhile(s)
				}
				return nil, nil
			}
			assert.Equal(t, c.want, said(s.judge(s.create(nowhere))))
			assert.Equal(t, c.looks, looks, "judgements")
		})
	}
}

func TestWritesOfOneObjectAreNotLaidOverEachOther(t *testing.T) {
	nowhere := func(value string) string {
		return worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]\na: "+value)
	}
	s := newSky(t, Options{}, gatewayGroup, route)
	looks := 0
	s.guard.Live = func(context.Context, api.Ref) (snapshot.Object, error) {
		if looks++; looks == 2 {
			s.admit(s.update(nowhere("1"), nowhere("3")))
		}
		return nil, nil
	}
	s.admit(s.create(nowhere("1")))
	s.admit(s.update(nowhere("1"), nowhere("2")))
	assert.Equal(t, 3, looks, "each is judged once")
	assert.Equal(t, 3, s.log.Len())
}

// Whether two writes meet may hang on a third that came later.
func TestAWriteInFlightMeetsMoreOnceOthersAreInFlight(t *testing.T) {
	s := newSky(t, Options{}, gatewayGroup)
	onService := worlds.PolicyDoc("Paint", "app", "behind", "targetRefs: [{group: '', kind: Service, name: s}]\na: 1")
	s.admit(s.create(onService))
	assert.Empty(t, s.met(s.create(limit)))
	s.admit(s.create(worlds.RouteDoc("r", "[{backendRefs: [{name: s, port: 80}]}]", "edge")))
	assert.Equal(t, []string{"Paint app/behind", "HTTPRoute app/r"}, s.met(s.create(limit)))
}

func TestAWriteThatIsStoredBeforeWeAnswerIsNotKept(t *testing.T) {
	s := newSky(t, Options{}, gatewayGroup, route)
	nowhere := worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]")
	s.guard.Live = func(context.Context, api.Ref) (snapshot.Object, error) {
		s.seen(nowhere, "11") // the API server's patience was over, and its failurePolicy Ignore
		return nil, nil
	}
	s.admit(s.create(nowhere))
	assert.Zero(t, s.log.Len())
	assert.Empty(t, s.log.named, "nothing is left behind")
	assert.Zero(t, s.log.busy.Load())
}

func TestAWriteWaitsForThoseThatItHangsOn(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*sky)
		want    []string
	}{
		"and is denied once they are seen":            {func(s *sky) { s.seen(limit, "11") }, []string{clipped}},
		"and is allowed once they are seen elsewhere": {func(s *sky) { s.seen(worlds.PolicyDoc("Paint", "infra", "limit", "b: 1"), "11") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSky(t, Options{MaxWait: time.Hour}, gatewayGroup, route)
			s.admit(s.create(limit))
			done := make(chan []string)
			go func() {
				d, err := s.log.Evaluate(t.Context(), s.guard, s.view, s.create(greedy))
				assert.NoError(t, err)
				done <- said(d)
			}()
			s.admit(s.create(worlds.GatewayDoc("other", "class", "http")))
			s.seen(worlds.GatewayDoc("other", "class", "http"), "11") // is no reason to look again
			c.happens(s)
			assert.Equal(t, c.want, <-done)
		})
	}
}

func TestAWriteWaitsForManyToBecomeFew(t *testing.T) {
	s := newSky(t, Options{}, gatewayGroup, route)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.admit(s.create(onRoute(name, "b: 1")))
	}
	s.log.MaxWait = time.Hour
	views := make(chan struct{}, 10)
	done := make(chan []string)
	go func() {
		view := func() *snapshot.View {
			views <- struct{}{}
			return s.view()
		}
		d, err := s.log.Evaluate(t.Context(), s.guard, view, s.create(modest))
		assert.NoError(t, err)
		done <- said(d)
	}()
	<-views
	<-views // it has looked, and met five
	s.seen(onRoute("a", "b: 1"), "11")
	s.seen(onRoute("b", "b: 1"), "12")
	assert.Empty(t, <-done)
	assert.Len(t, views, 3, "it looked once more, and was booked")
}

func TestNoWriteWaitsLongerThanItHas(t *testing.T) {
	s := newSky(t, Options{MaxWait: time.Hour}, gatewayGroup, route)
	s.admit(s.create(limit))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	d, err := s.log.Evaluate(ctx, s.guard, s.view, s.create(greedy))
	require.NoError(t, err)
	assert.Equal(t, with(ofLimit), said(d))
	require.NoError(t, ctx.Err(), "half of it is left")
}

func TestAWriteThatIsOvertakenAgainAndAgainIsToBeTriedAgain(t *testing.T) {
	s := newSky(t, Options{}, gatewayGroup, route)
	ctx, cancel := context.WithCancel(t.Context())
	nowhere := worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, {group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]")
	rounds := 0
	s.guard.Live = func(context.Context, api.Ref) (snapshot.Object, error) {
		if rounds++; rounds == 3 {
			cancel()
		}
		doc := onRoute("q"+string(rune('a'+rounds)), "b: 1")
		s.admit(s.create(doc))
		s.seen(doc, "11")
		return nil, nil
	}
	d, err := s.log.Evaluate(ctx, s.guard, s.view, s.create(nowhere))
	require.NoError(t, err)
	assert.Equal(t, []string{"Retry TooMuch: writes that matter to the same paths were admitted faster than this one could be judged"}, said(d))
	assert.Equal(t, 3, rounds)
}

func TestAWriteWhoseTimeIsOverIsNotKept(t *testing.T) {
	s := newSky(t, Options{}, gatewayGroup, route)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := s.create(worlds.GatewayDoc("other", "class", "http")) // without a path, so that nothing takes time
	_, err := s.log.Evaluate(ctx, s.guard, s.view, w)
	require.NoError(t, err)
	assert.Zero(t, s.log.Len())
	s.admit(w)
	assert.Equal(t, 1, s.log.Len())
}

func TestALogThatIsNilJudgesEachWriteByItself(t *testing.T) {
	s := newSky(t, Options{}, gatewayGroup, route, limit)
	var l *Log
	d, err := l.Evaluate(t.Context(), s.guard, s.view, s.create(greedy))
	require.NoError(t, err)
	assert.Equal(t, []string{clipped}, said(d))
	assert.Zero(t, l.Len())
}

var errLive = errors.New("no answer")

func TestWhatCannotBeJudgedIsAnError(t *testing.T) {
	nowhere := worlds.PolicyDoc("Paint", "app", "p", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}, {group: gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]")
	for name, c := range map[string]struct {
		inFlight []string
		failing  int // which judgement fails
	}{
		"by itself":                        {nil, 1},
		"with what is in flight laid over": {[]string{modest}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSky(t, Options{}, gatewayGroup, route)
			for _, doc := range c.inFlight {
				s.admit(s.create(doc))
			}
			asked := 0
			s.guard.Live = func(context.Context, api.Ref) (snapshot.Object, error) {
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

// rereading makes another view of the one that it is given.
type rereading func(*snapshot.View) (*snapshot.View, error)

func (rereading) Profiles() []api.ProfileInForce { return nil }

func (rereading) Schema(context.Context, api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	return nil, nil
}

func (r rereading) Reread(_ context.Context, v *snapshot.View, _, _ snapshot.Object) (*snapshot.View, error) {
	return r(v)
}

func TestAProfileInFlightIsLaidOverByReadingPoliciesAnew(t *testing.T) {
	profile := guard.Change{Operation: guard.Create, After: &policykind.Profile{PolicyProfile: api.PolicyProfile{Spec: api.PolicyProfileSpec{
		Group: worlds.Group, Kind: "Other", Class: api.Inherited, Targets: api.ProfileTargets{Fields: []string{"targetRef"}},
	}}}}
	write := Write{Change: profile, Precondition: func() Precondition { return Precondition{UID: "p"} }}

	t.Run("where what they say then makes a write wrong", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		reads := s.read(limit)
		s.guard.Kinds = rereading(func(v *snapshot.View) (*snapshot.View, error) { return v.With(snapshot.Put(reads)), nil })
		s.admit(write)
		assert.Equal(t, with("the write of PolicyProfile"), said(s.judge(s.create(greedy))))
	})
	t.Run("and that may take an override out of force that is in flight itself", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		s.guard.Rights, s.guard.Kinds = nil, rereading(func(v *snapshot.View) (*snapshot.View, error) {
			milder := *v.Kind(api.PolicyKind{Group: worlds.Group, Kind: "Paint"})
			milder.Actions = map[api.ReasonCode]api.Action{api.ReasonOverrideRemoved: api.Warn}
			return v.WithKinds([]*policykind.Kind{&milder}), nil
		})
		s.admit(s.create(limit))
		d := s.judge(write)
		assert.True(t, d.Denied())
		assert.True(t, d.Retry)
	})
	t.Run("one on top of the other, even if a view stays as it is", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		var seen []int
		s.guard.Kinds = rereading(func(v *snapshot.View) (*snapshot.View, error) {
			seen = append(seen, len(v.Readings()))
			return v, nil
		})
		s.admit(write)
		other := &policykind.Profile{PolicyProfile: profile.After.(*policykind.Profile).PolicyProfile}
		other.Name = "other"
		assert.False(t, s.judge(Write{Change: guard.Change{Operation: guard.Create, After: other}, Precondition: write.Precondition}).Denied())
		assert.Equal(t, []int{0, 0, 0, 1}, seen, "the first by itself; the second by itself; the first laid; the second on top")
	})
	t.Run("whose last finalizer is taken off, which ends it", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		s.guard.Kinds = rereading(func(v *snapshot.View) (*snapshot.View, error) { return v, nil })
		l := layer{guard: s.guard, view: s.view()}
		finalized := write
		finalized.Finalized = true
		require.NoError(t, l.lay(t.Context(), finalized))
		assert.Equal(t, []snapshot.Reading{{}}, l.flat().Readings())
	})
	t.Run("and that may fail", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		s.admit(write)
		s.guard.Kinds = rereading(func(*snapshot.View) (*snapshot.View, error) { return nil, errLive })
		_, err := s.log.Evaluate(t.Context(), s.guard, s.view, s.create(greedy))
		require.ErrorIs(t, err, errLive)
		assert.ErrorContains(t, err, "find out what PolicyProfile does to the policies: ")
	})
	t.Run("unless it defines a kind that another one defines", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		s.admit(write)
		s.admit(s.create(limit))
		s.guard.Kinds = rereading(func(*snapshot.View) (*snapshot.View, error) { return nil, &policykind.DefinedError{By: "others"} })
		assert.Equal(t, with(ofLimit), said(s.judge(s.create(greedy))), "the writes after it are laid over")
	})
	t.Run("unless nobody can", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		s.admit(write)
		s.admit(s.create(greedy))
	})
}

func TestPoliciesThatAreReadAnotherWay(t *testing.T) {
	anew := func(s *sky) {
		k := worlds.World(s, route).Kind(api.PolicyKind{Group: worlds.Group, Kind: "Paint"})
		s.store.AddKind(k)
		s.store.KindListed(k.Ref())
	}
	t.Run("a write of the old way is to be tried again", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		w := s.create(greedy)
		anew(s)
		d := s.judge(w)
		assert.Equal(t, []string{"Retry TooMuch: Paint app/greedy: policies of this kind are read in another way since a moment ago"}, said(d))
	})
	t.Run("one whose kind is read again at this moment is evaluated by the reading that the view has", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route, limit)
		w := s.create(greedy)
		s.store.AddKind(worlds.World(s, route).Kind(api.PolicyKind{Group: worlds.Group, Kind: "Paint"}))
		assert.Equal(t, []string{"ConstraintViolated: a: Invalid value: 100: not allowed by Paint infra/limit on Gateway infra/edge (when: spec.a > 50): it would be replaced by 50"}, said(s.judge(w)))
	})
	t.Run("so is one that meets such a write in flight", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		s.admit(s.create(limit))
		anew(s)
		d := s.judge(s.create(greedy))
		assert.Equal(t, []string{"Retry TooMuch: Paint infra/limit: policies of this kind are read in another way since a moment ago"}, said(d))
	})
	t.Run("a kind that is not read any more is no matter", func(t *testing.T) {
		s := newSky(t, Options{}, gatewayGroup, route)
		s.admit(s.create(limit))
		s.store.RemoveKind(api.PolicyKind{Group: worlds.Group, Kind: "Paint"})
		s.admit(s.update(route, worlds.RouteDoc("r", "[{name: x}]", "edge")))
	})
}

func TestANamespaceInFlightGoesWithAllThatIsInIt(t *testing.T) {
	namespace := "kind: Namespace\nmetadata: {name: infra}"
	s := newSky(t, Options{}, namespace, gatewayGroup, route, limit)
	s.admit(s.remove(namespace))
	assert.True(t, s.remove(namespace).footprint(s.view()).Meets(s.create(modest).footprint()), "also on what is elsewhere")
	assert.Equal(t, without("the write of Namespace infra"), said(s.judge(s.create(greedy))))
}

func TestCombinations(t *testing.T) {
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

func TestAMessageNamesAFewWrites(t *testing.T) {
	d := told("together with", []guard.Finding{{What: "no", Short: "n"}}, []*entry{
		{flown: flown{ref: api.Ref{Kind: "A", Name: "a"}}}, {flown: flown{ref: api.Ref{Kind: "B", Name: "b"}}},
		{flown: flown{ref: api.Ref{Kind: "C", Name: "c"}}}, {flown: flown{ref: api.Ref{Kind: "D", Name: "d"}}}, {},
	})
	assert.Equal(t, []guard.Finding{{
		What:  "no (together with the writes of A a, B b, C c and 2 more" + unseen,
		Short: "n (together with a write of a moment ago)",
	}}, d)
}

// Many writers at once, for the race detector; none is admitted beside what it
// breaks something with.
func TestManyWritersAtOnce(t *testing.T) {
	for round := range 20 {
		s := newSky(t, Options{}, gatewayGroup, route)
		writes := []Write{s.create(limit), s.create(greedy), s.create(modest), s.create(worlds.GatewayDoc("other", "class", "http"))}
		allowed := make(chan string, len(writes))
		for _, w := range writes {
			go func() {
				d, err := s.log.Evaluate(context.Background(), s.guard, s.view, w)
				if assert.NoError(t, err) && len(d.Denials) == 0 {
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
