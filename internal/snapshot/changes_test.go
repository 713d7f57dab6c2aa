package snapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

func TestChangesTake(t *testing.T) {
	c := NewChanges(3, nil)
	assert.Equal(t, Changed{All: true}, c.Take(), "at first nothing was looked at")
	assert.Empty(t, c.Take())

	put, removed := Event{After: &gateway.Class{Name: "a"}}, Event{Before: &gateway.Class{Name: "b"}}
	marked := api.Ref{Kind: "Gateway", Name: "edge"}
	c.Record([]Event{put})
	c.Record([]Event{removed})
	c.RecordMarks([]api.Ref{marked})
	assert.Equal(t, Changed{Events: []Event{put, removed}, Marked: []api.Ref{marked}}, c.Take(), "no more than is remembered")
	assert.Empty(t, c.Take())
}

func TestChangesTakeAll(t *testing.T) {
	put := Event{After: &gateway.Class{Name: "a"}}
	for name, act := range map[string]func(*Changes){
		"where policies are read in another way": func(c *Changes) { c.Record([]Event{put, {Kinds: true}}) },
		"where more did than is remembered":      func(c *Changes) { c.Record([]Event{put, put, put}) },
		"where more is marked than is remembered": func(c *Changes) {
			c.Record([]Event{put})
			c.RecordMarks([]api.Ref{{Name: "a"}, {Name: "b"}})
		},
		"after RecordAll": func(c *Changes) { c.RecordAll() },
		"whatever comes later": func(c *Changes) {
			c.RecordAll()
			c.Record([]Event{put})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewChanges(2, nil)
			c.Take()
			act(c)
			assert.Equal(t, Changed{All: true}, c.Take())
		})
	}
}

func TestChangesIgnore(t *testing.T) {
	ignore, put := Event{After: &gateway.Class{Name: "idle"}}, Event{After: &gateway.Class{Name: "a"}}
	c := NewChanges(2, func(e Event) bool { return !e.Kinds && e.After.Ref().Name == "idle" })
	c.Take()
	c.Record([]Event{ignore, ignore, ignore})
	assert.Empty(t, c.Wake())
	assert.Empty(t, c.Take())

	events := []Event{ignore, put, ignore}
	c.Record(events)
	assert.Len(t, c.Wake(), 1)
	assert.Equal(t, Changed{Events: []Event{put}}, c.Take())
	assert.Equal(t, []Event{ignore, put, ignore}, events, "the slice is not modified")
}

func TestChangesWake(t *testing.T) {
	c := NewChanges(10, nil)
	c.RecordMarks(nil)
	c.RecordAll()
	assert.Empty(t, c.Wake(), "RecordAll does not signal")
	c.Record([]Event{{After: &gateway.Class{Name: "a"}}})
	c.RecordMarks([]api.Ref{{Name: "a"}})
	assert.Len(t, c.Wake(), 1)
}

func TestEventObjects(t *testing.T) {
	a, b := &gateway.Class{Name: "a"}, &gateway.Class{Name: "b"}
	assert.Equal(t, []Object{a, b, a}, Objects([]Event{{Before: a, After: b}, {Kinds: true}, {After: a}}))
}
