package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/snapshot"
)

// listen collects the events of a store.
func listen(s *snapshot.Store) *[][]snapshot.Event {
	var out [][]snapshot.Event
	s.Subscribe(func(events []snapshot.Event) { out = append(out, events) })
	return &out
}

func TestEventsBeforeAndAfter(t *testing.T) {
	first, second, other := route(t, "r", "edge"), route(t, "r", "other"), route(t, "s", "edge")
	for name, c := range map[string]struct {
		act  func(*snapshot.Store)
		want []snapshot.Event
	}{
		"an object that is new has none before": {
			func(s *snapshot.Store) { s.Apply(snapshot.Put(other)) }, []snapshot.Event{{After: other}},
		},
		"an object that is put again has both": {
			func(s *snapshot.Store) { s.Apply(snapshot.Put(second)) }, []snapshot.Event{{Before: first, After: second}},
		},
		"an object that is taken out has none after": {
			func(s *snapshot.Store) { s.Apply(snapshot.Delete(first.Ref())) }, []snapshot.Event{{Before: first}},
		},
		"deleting a missing object is no event": {
			func(s *snapshot.Store) { s.Apply(snapshot.Delete(other.Ref())) }, nil,
		},
		"a list creates and deletes objects": {
			func(s *snapshot.Store) { s.Replace(routeKind, []snapshot.Object{other}) }, []snapshot.Event{{After: other}, {Before: first}},
		},
		"a kind that is listed is one event for all its policies": {
			func(s *snapshot.Store) {
				k := paint(t, "Paint")
				s.AddKind(k)
				s.KindListed(k.Ref())
			}, []snapshot.Event{{Kinds: true}},
		},
		"removing a kind is one event": {
			func(s *snapshot.Store) { s.RemoveKind(paintKind) }, []snapshot.Event{{Kinds: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot.New()
			s.Apply(snapshot.Put(first))
			events := listen(s)
			c.act(s)
			var got []snapshot.Event
			for _, e := range *events {
				got = append(got, e...)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestSubscribeAfterPublish(t *testing.T) {
	s := snapshot.New()
	r := route(t, "r", "edge")
	var shown snapshot.Object
	s.Subscribe(func([]snapshot.Event) {
		v, _ := s.View()
		shown = v.Get(r.Ref())
	})
	s.Apply(snapshot.Put(r))
	assert.Same(t, r, shown)
}

func TestObserveNotifiesAllWatchers(t *testing.T) {
	s := snapshot.New()
	r, deleted := route(t, "r", "edge"), route(t, "gone", "edge")
	s.Apply(puts(r, deleted)...)
	var one, two []snapshot.Observation
	s.Watch(func(seen []snapshot.Observation) { one = append(one, seen...) })
	s.Watch(func(seen []snapshot.Observation) {
		v, _ := s.View()
		assert.Nil(t, v.Get(deleted.Ref()), "the view shows it")
		two = append(two, seen...)
	})
	s.Replace(routeKind, []snapshot.Object{r})
	s.Observe(snapshot.Observation{Ref: r.Ref(), UID: "u1", Version: "12"})
	want := []snapshot.Observation{{Ref: deleted.Ref(), Deleted: true}, {Ref: r.Ref(), UID: "u1", Version: "12"}}
	assert.Equal(t, want, one, "a list only reports deletions; the source reports the objects")
	assert.Equal(t, want, two)
}
