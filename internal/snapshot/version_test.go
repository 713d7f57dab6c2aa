package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/snapshot"
)

func TestViewVersion(t *testing.T) {
	s := snapshot.New()
	version := func() uint64 {
		v, _ := s.View()
		return v.Version()
	}
	assert.Zero(t, version())

	s.Reached("7")
	assert.Zero(t, version(), "the view has nothing of it yet")
	s.Apply(snapshot.Put(route(t, "r", "edge")))
	before, _ := s.View()
	assert.EqualValues(t, 7, before.Version())

	s.Reached("5")
	s.Apply(snapshot.Put(newGateway(t, "edge", "istio")))
	assert.EqualValues(t, 7, version(), "another source is behind")

	s.Passed("12")
	assert.EqualValues(t, 12, version(), "nothing new came with it")
	s.Replace(routeKind, nil)
	assert.EqualValues(t, 12, version())
	assert.EqualValues(t, 7, before.Version(), "a view never changes")
	after, _ := s.View()
	assert.EqualValues(t, 12, after.With(snapshot.Put(route(t, "r", "edge"))).Version(), "what if is of that moment, too")
	assert.Zero(t, after.Count(routeKind))
}

func TestInvalidVersionIsIgnored(t *testing.T) {
	s := snapshot.New()
	s.Passed("3")
	for _, odd := range []string{"", "abc", "-4", "99999999999999999999999"} {
		s.Passed(odd)
	}
	v, _ := s.View()
	assert.EqualValues(t, 3, v.Version())
}
