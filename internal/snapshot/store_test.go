package snapshot_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

func TestStoreReadyOnceSourcesListed(t *testing.T) {
	_, ready := snapshot.New().View()
	assert.True(t, ready, "without sources at once")

	s := snapshot.New("gateways", "routes")
	_, ready = s.View()
	assert.False(t, ready)
	assert.Equal(t, []string{"gateways", "routes"}, s.Waiting())
	s.Apply(snapshot.Put(route(t, "r", "edge")))
	s.Listed("routes")
	_, ready = s.View()
	assert.False(t, ready)
	assert.Equal(t, []string{"gateways"}, s.Waiting())
	s.Listed("unheard of")
	s.Listed("gateways")
	v, ready := s.View()
	assert.True(t, ready)
	assert.Empty(t, s.Waiting())
	assert.Equal(t, 1, v.Count(routeKind))
}

func TestApplyPublishesNewView(t *testing.T) {
	s := snapshot.New()
	before, _ := s.View()
	s.Apply(snapshot.Put(route(t, "r", "edge")), snapshot.Put(newGateway(t, "edge", "istio")))
	after, _ := s.View()
	assert.Zero(t, before.Count(routeKind))
	assert.Equal(t, 1, after.Count(routeKind))
}

func TestReplace(t *testing.T) {
	s := snapshot.New()
	s.Apply(puts(route(t, "a", "edge"), route(t, "b", "edge"), newGateway(t, "edge", "istio"))...)
	s.Replace(routeKind, []snapshot.Object{route(t, "b", "other"), route(t, "c", "edge")})
	v, _ := s.View()
	assert.Equal(t, []string{"HTTPRoute app/b", "HTTPRoute app/c"}, names(v.Objects(routeKind)))
	assert.Equal(t, []string{"HTTPRoute app/c"}, names(v.RoutesOf(gatewayRef("edge"))))
	assert.Equal(t, 1, v.Count(gatewayKind), "others stay")
	s.Replace(routeKind, nil)
	v, _ = s.View()
	assert.Zero(t, v.Count(routeKind))
}

func TestKindPendingUntilListed(t *testing.T) {
	k := paint(t, "Paint")
	s := snapshot.New()
	s.AddKind(k)
	v, ready := s.View()
	assert.True(t, ready, "a new kind does not make the others unready")
	assert.Nil(t, v.Kind(paintKind))
	assert.True(t, s.Pending(paintKind))

	s.KindListed(paintKind, policy(t, k, "p", "r"))
	v, _ = s.View()
	assert.Same(t, k, v.Kind(paintKind))
	assert.False(t, s.Pending(paintKind))
	assert.Equal(t, []string{"Paint app/p"}, on(v, routeRef("r"), paintKind))

	s.KindListed(paintKind, policy(t, k, "q", "r"))
	v, _ = s.View()
	assert.Len(t, v.Kinds(), 1, "listed twice it is there once")
	assert.Equal(t, []string{"Paint app/q"}, on(v, routeRef("r"), paintKind))
}

func TestUnlistedKinds(t *testing.T) {
	k, other := paint(t, "Paint"), paint(t, "Other")
	s := snapshot.New()
	unlisted := func() []*policykind.Kind {
		v, _ := s.View()
		return v.Unlisted()
	}
	s.AddKind(k)
	s.AddKind(other)
	assert.Equal(t, []*policykind.Kind{other, k}, unlisted())
	v, _ := s.View()
	assert.Equal(t, []*policykind.Kind{other, k}, v.With(snapshot.Put(route(t, "r", "edge"))).Unlisted(), "after a write, too")

	again := paint(t, "Paint")
	s.AddKind(again) // its definition is changed before it is listed
	assert.Equal(t, []*policykind.Kind{other, again}, unlisted())
	s.KindListed(paintKind)
	assert.Equal(t, []*policykind.Kind{other}, unlisted())
	s.AddKind(k)
	assert.Equal(t, []*policykind.Kind{other}, unlisted(), "what was listed once stays in the view")

	s.SetUnlisted(other.Ref())
	assert.Empty(t, unlisted())
	assert.True(t, s.Pending(other.Ref()), "its own writes are not evaluated either way")
	s.AddKind(other)
	s.RemoveKind(other.Ref())
	assert.Empty(t, unlisted())
}

func TestRelistedKindIsReplacedAtomically(t *testing.T) {
	first, second, third := paint(t, "Paint"), paint(t, "Paint"), paint(t, "Paint")
	s := snapshot.New()
	s.AddKind(first)
	s.KindListed(paintKind, policy(t, first, "stays", "r"), policy(t, first, "goes", "r"))
	before, _ := s.View()
	var seen []snapshot.Observation
	s.Watch(func(all []snapshot.Observation) {
		v, _ := s.View()
		assert.Equal(t, []string{"Paint app/new", "Paint app/stays"}, on(v, routeRef("r"), paintKind), "the view shows it")
		seen = append(seen, all...)
	})
	events := listen(s)

	s.AddKind(second)
	s.AddKind(third) // the definition is changed twice
	v, _ := s.View()
	assert.Same(t, before, v, "until the list is complete, all is as it was")
	assert.True(t, s.Pending(paintKind), "what is written is to be read in the new way")

	s.KindListed(paintKind, policy(t, third, "stays", "r"), policy(t, third, "new", "r"))
	v, _ = s.View()
	assert.Same(t, third, v.Kind(paintKind))
	for p := range v.Policies(paintKind) {
		assert.Same(t, third, p.Kind)
	}
	assert.Equal(t, 2, v.Count(paintKind))
	assert.Equal(t, []*policykind.Kind{third}, v.Populated())
	assert.False(t, s.Pending(paintKind))
	assert.Equal(t, []snapshot.Observation{{Ref: policy(t, first, "goes", "r").Ref(), Deleted: true}}, seen, "it was deleted meanwhile")
	assert.Equal(t, [][]snapshot.Event{{{Kinds: true}}}, *events, "one moment")
}

func TestRemoveKind(t *testing.T) {
	k, other := paint(t, "Paint"), paint(t, "Other")
	s := snapshot.New()
	for _, kind := range []*policykind.Kind{k, other} {
		s.AddKind(kind)
		s.KindListed(kind.Ref(), policy(t, kind, "p", "r"))
	}
	s.AddKind(paint(t, "Paint")) // it is removed while it is read again
	s.RemoveKind(paintKind)
	s.KindListed(paintKind)
	v, _ := s.View()
	assert.Equal(t, []*policykind.Kind{other}, v.Kinds(), "one that was removed while pending is not listed any more")
	assert.False(t, s.Pending(paintKind))
	assert.Zero(t, v.Count(paintKind))
	assert.Empty(t, on(v, routeRef("r"), paintKind))
	assert.Equal(t, 1, v.Count(other.Ref()))
}

func TestStoreIsSafeForConcurrentUse(t *testing.T) {
	s := snapshot.New("routes")
	k := paint(t, "Paint")
	var wg sync.WaitGroup
	for i := range 4 {
		r, p := route(t, fmt.Sprintf("r%d", i), "edge"), policy(t, k, fmt.Sprintf("p%d", i), "r0")
		wg.Go(func() {
			for range 50 {
				s.Apply(snapshot.Put(r))
				s.AddKind(k)
				s.KindListed(paintKind, p)
				s.Listed("routes")
			}
		})
		wg.Go(func() {
			for range 50 {
				v, ready := s.View()
				if ready {
					assert.Positive(t, v.Count(routeKind))
				}
				_, _ = names(v.RoutesOf(gatewayRef("edge"))), s.Pending(paintKind)
				v.With(snapshot.Delete(r.Ref()))
			}
		})
	}
	wg.Wait()
	v, _ := s.View()
	assert.Equal(t, 4, v.Count(routeKind))
}
