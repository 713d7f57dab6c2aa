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
	BlindSince time.Time
	// Err is why the resource cannot be watched at the moment, or nil.
	Err error
	// Lists counts full lists, and Failures the calls that failed. A watch
	// that keeps breaking shows in their growth.
	Lists, Failures uint64
}

// Current returns when the resource was last known to be as the API server has
// it; zero means never. Where nothing changes that is some minute ago.
func (h SourceHealth) Current() time.Time {
	if !h.BlindSince.IsZero() && h.BlindSince.Before(h.LastContact) {
		return h.BlindSince // what came since then is part of a list that is not complete
	}
	return h.LastContact
}

// contact keeps the health of one source.
type contact struct {
	now func() time.Time

	mu     sync.Mutex
	health SourceHealth
	// open tells that a watch is open. One that begins with a list tells what
	// changes only once that list is complete.
	open bool
	// listed is the time of the last full list.
	listed time.Time
	// failing is since when all calls fail; zero if the last one did not.
	failing time.Time
	// told is the failure that was last worth telling of since then.
	told error
	// among are the sources that it is one of; nil if nobody asks.
	among *peers
}

func newContact(source string) *contact {
	return &contact{now: time.Now, health: SourceHealth{Source: source}}
}

// succeed has the source go on from an earlier one of the same objects, which
// stay until they are listed again: they grow old from when that one ended.
func (c *contact) succeed(earlier *contact) {
	was := earlier.get()
	if !was.Synced {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was.Source, was.Err = c.health.Source, nil
	if was.BlindSince.IsZero() {
		was.BlindSince = c.now()
	}
	c.health = was
}

func (c *contact) get() SourceHealth {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// event tells that something arrived.
func (c *contact) event() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.health.LastContact = c.now()
}

// list tells that a full list arrived, and reports whether that mends a failure that
// was told. A list without a watch mends none: it ages at once.
func (c *contact) list() (mended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed = c.now()
	c.health.LastContact = c.listed
	c.health.Synced = true
	c.health.Lists++
	if c.open {
		return c.sees()
	}
	c.blind(c.listed)
	return false
}

// opened tells that a watch is open, and reports whether that mends a failure.
// One that lists first does so when it has: see list.
func (c *contact) opened(listsFirst bool) (mended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = true
	c.health.LastContact = c.now()
	return !listsFirst && c.sees()
}

// closed tells that the watch has ended.
func (c *contact) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
	c.blind(c.now())
}

// stopped tells that nobody listened to the watch since a time, open or not.
func (c *contact) stopped(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blind(since)
}

func (c *contact) sees() (mended bool) {
	mended = c.told != nil
	failed, blind := c.health.Err != nil, !c.health.BlindSince.IsZero()
	c.health.BlindSince, c.health.Err, c.failing, c.told = time.Time{}, nil, time.Time{}, nil
	if c.among != nil && failed {
		c.among.wake()
	}
	if c.among != nil && blind {
		c.among.change(false)
	}
	return mended
}

// join makes the source one of some.
func (c *contact) join(s *peers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.among = s
	s.change(!c.health.BlindSince.IsZero())
}

// leave takes it out: nobody reads it any more.
func (c *contact) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.among != nil {
		c.among.change(false)
	}
	c.among = nil
}

func (c *contact) blind(since time.Time) {
	if !c.health.Synced || !c.health.BlindSince.IsZero() {
		return
	}
	c.health.BlindSince = since
	if c.among != nil {
		c.among.change(true)
	}
}

// outdated reports whether so much was missed that a watch from where the last
// one ended will not do: nothing tells when it has caught up, as the end of a
// list does.
func (c *contact) outdated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health.stale(c.now()) && !c.listed.After(c.health.BlindSince)
}

// silent reports whether an open watch has told nothing for so long that it is
// dead, whatever its connection says.
func (c *contact) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open && c.now().Sub(c.health.LastContact) > silentAfter
}

// hopeless returns why a source that was never listed is not given out, and nil
// as long as it may be soon.
func (c *contact) hopeless(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.health.Synced || c.failing.IsZero() || now.Sub(c.failing) <= hopelessAfter {
		return nil
	}
	return c.health.Err
}

// failed tells that a call failed, and reports whether that is news: what an
// error says may differ each time, by a port if nothing else. That a resource is
// to be asked for again is none at first: each one says so when it has just come.
func (c *contact) failed(err error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing.IsZero() {
		c.failing = c.now()
	}
	c.health.Err = err
	c.health.Failures++
	if c.among != nil {
		c.among.change(false)
	}
	if apierrors.IsTooManyRequests(err) && c.now().Sub(c.failing) < StaleAfter {
		return false
	}
	if c.told != nil && apierrors.ReasonForError(c.told) == apierrors.ReasonForError(err) {
		return false
	}
	c.told = err
	return true
}
