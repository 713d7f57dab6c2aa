package inflight

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

func TestObservedBy(t *testing.T) {
	created := &entry{write: Write{Change: guard.Change{Operation: guard.Create}}, precondition: Precondition{UID: "u"}}
	updated := &entry{write: Write{Change: guard.Change{Operation: guard.Update}}, precondition: Precondition{"u", "99"}}
	deleted := &entry{write: Write{Change: guard.Change{Operation: guard.Delete}}, precondition: Precondition{"u", "99"}}
	for name, c := range map[string]struct {
		write *entry
		seen  snapshot.Observation
		want  bool
	}{
		"a created object is there":                        {created, snapshot.Observation{UID: "u", Version: "1"}, true},
		"another one of that name is there":                {created, snapshot.Observation{UID: "other", Version: "1"}, false},
		"a created object is gone again":                   {created, snapshot.Observation{UID: "u", Version: "2", Deleted: true}, true},
		"a list does not have what is created":             {created, snapshot.Observation{Deleted: true}, false},
		"a created object without a uid":                   {&entry{write: created.write}, snapshot.Observation{}, false},
		"an updated object has a later version":            {updated, snapshot.Observation{UID: "u", Version: "100"}, true},
		"an updated object has the version that it had":    {updated, snapshot.Observation{UID: "u", Version: "99"}, false},
		"an updated object has an earlier version":         {updated, snapshot.Observation{UID: "u", Version: "98"}, false},
		"an updated object is gone":                        {updated, snapshot.Observation{UID: "u", Version: "100", Deleted: true}, true},
		"a list does not have an updated object":           {updated, snapshot.Observation{Deleted: true}, true},
		"another one was there before":                     {updated, snapshot.Observation{UID: "other", Version: "98", Deleted: true}, false},
		"another one is there now":                         {updated, snapshot.Observation{UID: "other", Version: "100"}, true},
		"versions cannot be compared, and differ":          {updated, snapshot.Observation{UID: "u", Version: "abc"}, true},
		"a deleted object is gone":                         {deleted, snapshot.Observation{UID: "u", Version: "100", Deleted: true}, true},
		"a deleted object waits for its finalizers":        {deleted, snapshot.Observation{UID: "u", Version: "100"}, true},
		"a deleted object is as it was":                    {deleted, snapshot.Observation{UID: "u", Version: "99"}, false},
		"a list does not have a deleted object":            {deleted, snapshot.Observation{Deleted: true}, true},
		"an object before the deleted one is seen to go":   {deleted, snapshot.Observation{UID: "other", Version: "9", Deleted: true}, false},
		"an object has the place of a deleted one already": {deleted, snapshot.Observation{UID: "other", Version: "101"}, true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.write.observedBy(c.seen)) })
	}
}

func TestOtherObservationsAreIgnored(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup, route, onRoute("modest", "a: 1"), onRoute("limit", "b: 1"))
	s.admit(s.update(onRoute("modest", "a: 1"), modest))
	s.admit(s.create(limit))
	s.admit(s.update(onRoute("limit", "b: 1"), onRoute("limit", "b: 2")))
	s.observe(modest, "11")
	assert.Equal(t, 2, s.log.Len())
	s.observe(onRoute("limit", "b: 2"), "13")
	assert.Equal(t, 1, s.log.Len())
	s.observe(limit, "12")
	assert.Zero(t, s.log.Len())
	assert.Empty(t, s.log.entries, "nothing is left behind")
	assert.Empty(t, s.log.perObject)
	assert.Zero(t, s.log.busy.Load())
}
