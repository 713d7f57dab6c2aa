package cache

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestHealthTellsALiveWatchFromADeadOne(t *testing.T) {
	now := time.Unix(100, 0)
	c := newContact("gateways")
	c.now = func() time.Time { return now }
	lost := errors.New("connection refused")

	assert.Equal(t, SourceHealth{Source: "gateways"}, c.get())

	assert.True(t, c.failed(lost))
	assert.False(t, c.failed(errors.New("connection refused from another port")), "it fails as before")
	assert.True(t, c.failed(apierrors.NewForbidden(schema.GroupResource{}, "", nil)), "it fails for another reason")
	assert.True(t, c.failed(lost))

	assert.False(t, c.list(), "a list mends no watch")
	assert.Equal(t, SourceHealth{Source: "gateways", Synced: true, LastContact: now, BlindSince: now, Err: lost, Lists: 1, Failures: 4},
		c.get(), "and ages at once")

	now = now.Add(time.Second)
	assert.True(t, c.opened(false))
	assert.False(t, c.opened(false))
	assert.Equal(t, SourceHealth{Source: "gateways", Synced: true, LastContact: now, Lists: 1, Failures: 4}, c.get())

	now = now.Add(time.Second)
	c.event()
	assert.Equal(t, now, c.get().LastContact)
	assert.Equal(t, now, c.get().Current())

	c.closed()
	ended := now
	assert.Equal(t, ended, c.get().BlindSince)
	now = now.Add(time.Second)
	c.closed()
	assert.Equal(t, ended, c.get().BlindSince, "it is blind since the first watch ended")
}

func TestAWatchThatListsFirstSeesWhenItHasListed(t *testing.T) {
	now := time.Unix(100, 0)
	c := newContact("gateways")
	c.now = func() time.Time { return now }

	c.opened(true)
	assert.Zero(t, c.get().BlindSince, "what was never listed is not known at all: the store says so")
	c.closed()
	assert.Zero(t, c.get().BlindSince)
	c.opened(true)
	c.list()
	assert.Zero(t, c.get().BlindSince)

	c.closed()
	ended := now
	c.failed(errCut)
	now = now.Add(time.Minute)
	assert.False(t, c.opened(true))
	c.event()
	assert.Equal(t, ended, c.get().BlindSince, "a list that is not complete shows nothing yet")
	assert.Equal(t, ended, c.get().Current())
	assert.True(t, c.list(), "it is mended now")
	assert.Zero(t, c.get().BlindSince)
	assert.Equal(t, now, c.get().Current())
}

func TestWhatWasMissedForLongIsListedAnew(t *testing.T) {
	now := time.Unix(100, 0)
	c := newContact("gateways")
	c.now = func() time.Time { return now }
	assert.False(t, c.outdated(), "it is listed anyway")
	c.list()
	c.opened(false)
	assert.False(t, c.outdated())

	c.closed()
	now = now.Add(StaleAfter)
	assert.False(t, c.outdated(), "a short break goes on from where it was")
	now = now.Add(time.Second)
	assert.True(t, c.outdated())
	c.list()
	assert.False(t, c.outdated(), "the list is newer than the break")
}

func TestAnOpenWatchThatTellsNothingIsSilent(t *testing.T) {
	now := time.Unix(100, 0)
	c := newContact("gateways")
	c.now = func() time.Time { return now }
	now = now.Add(time.Hour)
	assert.False(t, c.silent(), "there is no watch")
	c.opened(false)
	now = now.Add(silentAfter)
	assert.False(t, c.silent(), "bookmarks come once a minute")
	now = now.Add(time.Second)
	assert.True(t, c.silent())
	c.event()
	assert.False(t, c.silent())
}

// Each resource whose definition has just come or changed is to be asked for again
// for a moment.
func TestAResourceThatIsBeingMadeReadyIsToldOfWhenThatLasts(t *testing.T) {
	now := time.Unix(100, 0)
	c := newContact("gateways")
	c.now = func() time.Time { return now }
	busy := apierrors.NewTooManyRequests("storage is (re)initializing", 1)

	assert.False(t, c.failed(busy))
	assert.Equal(t, busy, c.get().Err)
	c.opened(true)
	assert.False(t, c.list(), "nobody was told")
	c.closed()

	assert.False(t, c.failed(busy))
	now = now.Add(StaleAfter - time.Second)
	assert.False(t, c.failed(busy))
	now = now.Add(time.Second)
	assert.True(t, c.failed(busy))
	assert.False(t, c.failed(busy), "once")
	assert.True(t, c.opened(false))
}
