package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/store"
)

// listen collects the events of a store.
func listen(s *store.Store) *[][]store.Event {
	var out [][]store.Event
	s.Subscribe(func(events []store.Event) { out = append(out, events) })
	return &out
}

func TestEventsHaveAnObjectBeforeAndAfter(t *testing.T) {
	first, second, other := route(t, "r", "edge"), route(t, "r", "other"), route(t, "s", "edge")
	for name, c := range map[string]struct {
		act  func(*store.Store)
		want []store.Event
	}{
		"an object that is new has none before": {
			func(s *store.Store) { s.Apply(store.Put(other)) }, []store.Event{{After: other}},
		},
		"an object that is put again has both": {
			func(s *store.Store) { s.Apply(store.Put(second)) }, []store.Event{{Before: first, After: second}},
		},
		"an object that is taken out has none after": {
			func(s *store.Store) { s.Apply(store.Delete(first.Ref())) }, []store.Event{{Before: first}},
		},
		"taking out what is not there is no event": {
			func(s *store.Store) { s.Apply(store.Delete(other.Ref())) }, nil,
		},
		"a list brings all that it has and takes what it lacks": {
			func(s *store.Store) { s.Replace(routeKind, []store.Object{other}) }, []store.Event{{After: other}, {Before: first}},
		},
		"a kind that is listed is one event for all its policies": {
			func(s *store.Store) {
				k := paint(t, "Paint")
				s.AddKind(k)
				s.KindListed(k.Ref())
			}, []store.Event{{Kinds: true}},
		},
		"a kind that goes is one event": {
			func(s *store.Store) { s.RemoveKind(paintKind) }, []store.Event{{Kinds: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := store.New()
			s.Apply(store.Put(first))
			events := listen(s)
			c.act(s)
			var got []store.Event
			for _, e := range *events {
				got = append(got, e...)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestAnEventComesWhenTheViewShowsIt(t *testing.T) {
	s := store.New()
	r := route(t, "r", "edge")
	var shown store.Object
	s.Subscribe(func([]store.Event) {
		v, _ := s.View()
		shown = v.Get(r.Ref())
	})
	s.Apply(store.Put(r))
	assert.Same(t, r, shown)
}

func TestWhatIsSeenIsToldToAllWhoWatch(t *testing.T) {
	s := store.New()
	r, gone := route(t, "r", "edge"), route(t, "gone", "edge")
	s.Apply(puts(r, gone)...)
	var one, two []store.Seen
	s.Watch(func(seen []store.Seen) { one = append(one, seen...) })
	s.Watch(func(seen []store.Seen) {
		v, _ := s.View()
		assert.Nil(t, v.Get(gone.Ref()), "the view shows it")
		two = append(two, seen...)
	})
	s.Replace(routeKind, []store.Object{r})
	s.Saw(store.Seen{Ref: r.Ref(), UID: "u1", Version: "12"})
	want := []store.Seen{{Ref: gone.Ref(), Deleted: true}, {Ref: r.Ref(), UID: "u1", Version: "12"}}
	assert.Equal(t, want, one, "a list tells what it lacks; what it has is told by who reads it")
	assert.Equal(t, want, two)
}
