package cache

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// SourceHealth tells how fresh what is known of one resource is.
type SourceHealth struct {
	// Source is the resource: one of Sources, or the name of the
	// CustomResourceDefinition of a policy kind.
	Source string
	// Kind is the policy kind that is read, zero for all other resources.
	Kind api.PolicyKind
	// Synced tells that it was listed in full at least once.
	Synced bool
	// LastContact is when the API server last told anything: an event, a list,
	// or a bookmark, which come about once a minute. Zero means never.
	LastContact time.Time
	// BlindSince is since when no watch tells what changes. It is zero while one does,
	// and before the first list.
	DisconnectedSince time.Time
	// Err is why the resource cannot be watched at the moment, or nil.
	Err error
	// Lists counts full lists, and Failures the calls that failed. A watch
	// that keeps breaking shows in their growth.
	Lists, Failures uint64
}

// Current returns when the resource was last known to be as the API server has
// it; zero means never. Where nothing changes that is some minute ago.
func (h SourceHealth) Current() time.Time {
	if !h.DisconnectedSince.IsZero() && h.DisconnectedSince.Before(h.LastContact) {
		return h.DisconnectedSince // what came since then is part of a list that is not complete
	}
	return h.LastContact
}

// contact keeps the health of one source.
type healthTracker struct {
	now func() time.Time

	mu     sync.Mutex
	health SourceHealth
	// open tells that a watch is open. One that begins with a list tells what
	// changes only once that list is complete.
	watchOpen bool
	// listed is the time of the last full list.
	lastList time.Time
	// failing is since when all calls fail; zero if the last one did not.
	failingSince time.Time
	// told is the failure that was last worth telling of since then.
	lastLogged error
	// among are the sources that it is one of; nil if nobody asks.
	group *sourceGroup
}

func newHealthTracker(source string) *healthTracker {
	return &healthTracker{now: time.Now, health: SourceHealth{Source: source}}
}

// succeed has the source go on from an earlier one of the same objects, which
// stay until they are listed again: they grow old from when that one ended.
func (c *healthTracker) inherit(earlier *healthTracker) {
	was := earlier.get()
	if !was.Synced {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was.Source, was.Err = c.health.Source, nil
	if was.DisconnectedSince.IsZero() {
		was.DisconnectedSince = c.now()
	}
	c.health = was
}

func (c *healthTracker) get() SourceHealth {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// event tells that something arrived.
func (c *healthTracker) recordEvent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.health.LastContact = c.now()
}

// list tells that a full list arrived, and reports whether that mends a failure that
// was told. A list without a watch mends none: it ages at once.
func (c *healthTracker) recordList() (mended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastList = c.now()
	c.health.LastContact = c.lastList
	c.health.Synced = true
	c.health.Lists++
	if c.watchOpen {
		return c.markConnected()
	}
	c.markDisconnected(c.lastList)
	return false
}

// opened tells that a watch is open, and reports whether that mends a failure.
// One that lists first does so when it has: see list.
func (c *healthTracker) watchOpened(listsFirst bool) (mended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchOpen = true
	c.health.LastContact = c.now()
	return !listsFirst && c.markConnected()
}

// closed tells that the watch has ended.
func (c *healthTracker) watchClosed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchOpen = false
	c.markDisconnected(c.now())
}

// stopped tells that nobody listened to the watch since a time, open or not.
func (c *healthTracker) markStalled(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.markDisconnected(since)
}

func (c *healthTracker) markConnected() (mended bool) {
	mended = c.lastLogged != nil
	failed, blind := c.health.Err != nil, !c.health.DisconnectedSince.IsZero()
	c.health.DisconnectedSince, c.health.Err, c.failingSince, c.lastLogged = time.Time{}, nil, time.Time{}, nil
	if c.group != nil && failed {
		c.group.notifyRecovered()
	}
	if c.group != nil && blind {
		c.group.recordChange(false)
	}
	return mended
}

// join makes the source one of some.
func (c *healthTracker) join(s *sourceGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group = s
	s.recordChange(!c.health.DisconnectedSince.IsZero())
}

// leave takes it out: nobody reads it any more.
func (c *healthTracker) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.group != nil {
		c.group.recordChange(false)
	}
	c.group = nil
}

func (c *healthTracker) markDisconnected(since time.Time) {
	if !c.health.Synced || !c.health.DisconnectedSince.IsZero() {
		return
	}
	c.health.DisconnectedSince = since
	if c.group != nil {
		c.group.recordChange(true)
	}
}

// outdated reports whether so much was missed that a watch from where the last
// one ended will not do: nothing tells when it has caught up, as the end of a
// list does.
func (c *healthTracker) needsRelist() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health.stale(c.now()) && !c.lastList.After(c.health.DisconnectedSince)
}

// silent reports whether an open watch has told nothing for so long that it is
// dead, whatever its connection says.
func (c *healthTracker) isSilent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watchOpen && c.now().Sub(c.health.LastContact) > silenceTimeout
}

// hopeless returns why a source that was never listed is not given out, and nil
// as long as it may be soon.
func (c *healthTracker) listFailure(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.health.Synced || c.failingSince.IsZero() || now.Sub(c.failingSince) <= initialListTimeout {
		return nil
	}
	return c.health.Err
}

// failed tells that a call failed, and reports whether that is news: what an
// error says may differ each time, by a port if nothing else. That a resource is
// to be asked for again is none at first: each one says so when it has just come.
func (c *healthTracker) recordFailure(err error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failingSince.IsZero() {
		c.failingSince = c.now()
	}
	c.health.Err = err
	c.health.Failures++
	if c.group != nil {
		c.group.recordChange(false)
	}
	if apierrors.IsTooManyRequests(err) && c.now().Sub(c.failingSince) < StaleAfter {
		return false
	}
	if c.lastLogged != nil && apierrors.ReasonForError(c.lastLogged) == apierrors.ReasonForError(err) {
		return false
	}
	c.lastLogged = err
	return true
}
