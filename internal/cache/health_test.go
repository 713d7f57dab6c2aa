package cache

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestHealthOfWatch(t *testing.T) {
	now := time.Unix(100, 0)
	c := newHealthTracker("gateways")
	c.now = func() time.Time { return now }
	lost := errors.New("connection refused")

	assert.Equal(t, SourceHealth{Source: "gateways"}, c.get())

	assert.True(t, c.recordFailure(lost))
	assert.False(t, c.recordFailure(errors.New("connection refused from another port")), "same reason")
	assert.True(t, c.recordFailure(apierrors.NewForbidden(schema.GroupResource{}, "", nil)), "another reason")
	assert.True(t, c.recordFailure(lost))

	assert.False(t, c.recordList("1", 0), "a list does not replace a watch")
	assert.Equal(t, SourceHealth{Source: "gateways", Synced: true, LastContact: now, DisconnectedSince: now, Err: lost, Lists: 1, Failures: 4},
		c.get(), "it ages at once")

	now = now.Add(time.Second)
	assert.True(t, c.watchOpened(false))
	assert.False(t, c.watchOpened(false))
	assert.Equal(t, SourceHealth{Source: "gateways", Synced: true, LastContact: now, Lists: 1, Failures: 4}, c.get())

	now = now.Add(time.Second)
	c.recordContact()
	assert.Equal(t, now, c.get().LastContact)
	assert.Equal(t, now, c.get().UpToDateAt())

	c.watchClosed()
	ended := now
	assert.Equal(t, ended, c.get().DisconnectedSince)
	now = now.Add(time.Second)
	c.watchClosed()
	assert.Equal(t, ended, c.get().DisconnectedSince, "disconnected since the first watch ended")
}

func TestStreamingWatchIsConnectedAfterList(t *testing.T) {
	now := time.Unix(100, 0)
	c := newHealthTracker("gateways")
	c.now = func() time.Time { return now }

	c.watchOpened(true)
	assert.Zero(t, c.get().DisconnectedSince, "not disconnected before the first list")
	c.watchClosed()
	assert.Zero(t, c.get().DisconnectedSince)
	c.watchOpened(true)
	c.recordList("1", 0)
	assert.Zero(t, c.get().DisconnectedSince)

	c.watchClosed()
	ended := now
	c.recordFailure(errConnectionCut)
	now = now.Add(time.Minute)
	assert.False(t, c.watchOpened(true))
	c.recordContact()
	assert.Equal(t, ended, c.get().DisconnectedSince, "an incomplete list does not count")
	assert.Equal(t, ended, c.get().UpToDateAt())
	assert.True(t, c.recordList("1", 0), "recovered")
	assert.Zero(t, c.get().DisconnectedSince)
	assert.Equal(t, now, c.get().UpToDateAt())
}

func TestNeedsRelistWhenStale(t *testing.T) {
	now := time.Unix(100, 0)
	c := newHealthTracker("gateways")
	c.now = func() time.Time { return now }
	assert.False(t, c.needsRelist(), "it will be listed anyway")
	c.recordList("1", 0)
	c.watchOpened(false)
	assert.False(t, c.needsRelist())

	c.watchClosed()
	now = now.Add(StaleAfter)
	assert.False(t, c.needsRelist(), "a short break resumes")
	now = now.Add(time.Second)
	assert.True(t, c.needsRelist())
	c.listRequested()
	c.recordList("1", 0)
	assert.False(t, c.needsRelist(), "the list is newer than the break")
}

func TestOpenWatchWithoutEventsIsSilent(t *testing.T) {
	now := time.Unix(100, 0)
	c := newHealthTracker("gateways")
	c.now = func() time.Time { return now }
	now = now.Add(time.Hour)
	assert.False(t, c.isSilent(), "there is no watch")
	c.watchOpened(false)
	now = now.Add(silenceTimeout)
	assert.False(t, c.isSilent(), "bookmarks come once a minute")
	now = now.Add(time.Second)
	assert.True(t, c.isSilent())
	c.recordContact()
	assert.False(t, c.isSilent())
}

// Each resource whose definition was just created or changed asks for a retry for a
// moment.
func TestTooManyRequestsIsLoggedWhenItPersists(t *testing.T) {
	now := time.Unix(100, 0)
	c := newHealthTracker("gateways")
	c.now = func() time.Time { return now }
	busy := apierrors.NewTooManyRequests("storage is (re)initializing", 1)

	assert.False(t, c.recordFailure(busy))
	assert.Equal(t, busy, c.get().Err)
	c.watchOpened(true)
	assert.False(t, c.recordList("1", 0), "nothing was logged")
	c.watchClosed()

	assert.False(t, c.recordFailure(busy))
	now = now.Add(StaleAfter - time.Second)
	assert.False(t, c.recordFailure(busy))
	now = now.Add(time.Second)
	assert.True(t, c.recordFailure(busy))
	assert.False(t, c.recordFailure(busy), "once")
	assert.True(t, c.watchOpened(false))
}

// However short ago it was listed, a source that has expired does not resume its watch,
// and a list that was requested before does not count.
func TestExpiredSourceIsRelisted(t *testing.T) {
	now := time.Unix(100, 0)
	h := newHealthTracker("httproutes")
	h.now = func() time.Time { return now }
	h.watchOpened(true)
	h.recordList("1", 0)
	h.listRequested()
	now = now.Add(time.Second)
	h.expire(&RestoredError{})
	assert.True(t, h.needsRelist())
	h.watchOpened(false)
	assert.False(t, h.get().DisconnectedSince.IsZero(), "a watch that was being opened does not count")
	h.recordList("2", 0)
	assert.True(t, h.needsRelist())
	assert.False(t, h.get().RestoredAt.IsZero())
	h.listRequested()
	h.recordList("3", 0)
	assert.False(t, h.needsRelist())
	assert.True(t, h.get().RestoredAt.IsZero())
	assert.True(t, h.get().DisconnectedSince.IsZero())
}
