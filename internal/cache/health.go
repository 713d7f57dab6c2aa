package cache

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// SourceHealth is the state of the watch of one resource.
type SourceHealth struct {
	// Source is the resource: one of Sources, or the name of the
	// CustomResourceDefinition of a policy kind.
	Source string
	// Kind is the policy kind that is read, zero for all other resources.
	Kind api.PolicyKind
	// Synced is true after the first full list.
	Synced bool
	// LastContact is when the API server last sent an event, a list or a bookmark
	// (about one a minute). Zero means never.
	LastContact time.Time
	// DisconnectedSince is when the last watch ended. It is zero while a watch is
	// connected, and before the first list.
	DisconnectedSince time.Time
	// Err is why the resource cannot be watched at the moment, or nil.
	Err error
	// Lists counts full lists, and Failures failed calls. Both grow quickly if a watch
	// keeps breaking.
	Lists, Failures uint64
}

// Current returns when the cached state last equaled that of the API server; zero means
// never. It may be about a minute ago if nothing changes.
func (h SourceHealth) Current() time.Time {
	if !h.DisconnectedSince.IsZero() && h.DisconnectedSince.Before(h.LastContact) {
		return h.DisconnectedSince // events since then belong to an incomplete list
	}
	return h.LastContact
}

// healthTracker tracks the health of one source.
type healthTracker struct {
	now func() time.Time

	mu     sync.Mutex
	health SourceHealth
	// watchOpen is true while a watch is open. A streaming watch is connected only
	// once its initial list is complete.
	watchOpen bool
	// lastList is the time of the last full list.
	lastList time.Time
	// failingSince is when calls started to fail, zero if the last one succeeded.
	failingSince time.Time
	// lastLogged is the last failure that was logged since then.
	lastLogged error
	// group is the group of sources that it belongs to, or nil.
	group *sourceGroup
}

func newHealthTracker(source string) *healthTracker {
	return &healthTracker{now: time.Now, health: SourceHealth{Source: source}}
}

// inherit takes over the state of an earlier tracker of the same objects, which stay in
// the store until they are relisted. They age from the end of the earlier watch.
func (c *healthTracker) inherit(earlier *healthTracker) {
	state := earlier.get()
	if !state.Synced {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	state.Source, state.Err = c.health.Source, nil
	if state.DisconnectedSince.IsZero() {
		state.DisconnectedSince = c.now()
	}
	c.health = state
}

func (c *healthTracker) get() SourceHealth {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// recordEvent records that an event or a bookmark arrived.
func (c *healthTracker) recordEvent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.health.LastContact = c.now()
}

// recordList records a full list and reports whether it ends a failure that was logged.
// A list without a watch does not: it ages at once.
func (c *healthTracker) recordList() (recovered bool) {
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

// watchOpened records that a watch is open, and reports whether it ends a failure that
// was logged. A streaming watch does so when its list is complete: see recordList.
func (c *healthTracker) watchOpened(listsFirst bool) (recovered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchOpen = true
	c.health.LastContact = c.now()
	return !listsFirst && c.markConnected()
}

// watchClosed records that the watch has ended.
func (c *healthTracker) watchClosed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchOpen = false
	c.markDisconnected(c.now())
}

// markStalled records that nothing was read from the watch since a time, whether or not
// it is open.
func (c *healthTracker) markStalled(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.markDisconnected(since)
}

func (c *healthTracker) markConnected() (recovered bool) {
	recovered = c.lastLogged != nil
	failed, blind := c.health.Err != nil, !c.health.DisconnectedSince.IsZero()
	c.health.DisconnectedSince, c.health.Err, c.failingSince, c.lastLogged = time.Time{}, nil, time.Time{}, nil
	if c.group != nil && failed {
		c.group.notifyRecovered()
	}
	if c.group != nil && blind {
		c.group.recordChange(false)
	}
	return recovered
}

// join adds the source to a group.
func (c *healthTracker) join(s *sourceGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group = s
	s.recordChange(!c.health.DisconnectedSince.IsZero())
}

// leave removes the source from its group.
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

// needsRelist reports whether the watch was disconnected for so long that it must not
// resume: unlike the end of a list, no event shows when a resumed watch has caught up.
func (c *healthTracker) needsRelist() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health.stale(c.now()) && !c.lastList.After(c.health.DisconnectedSince)
}

// isSilent reports whether an open watch has received nothing for so long that it must
// be dead.
func (c *healthTracker) isSilent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watchOpen && c.now().Sub(c.health.LastContact) > silenceTimeout
}

// listFailure returns why a source was never listed, and nil while it may still be
// listed soon.
func (c *healthTracker) listFailure(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.health.Synced || c.failingSince.IsZero() || now.Sub(c.failingSince) <= initialListTimeout {
		return nil
	}
	return c.health.Err
}

// recordFailure records a failed call and reports whether to log it. Errors are
// compared by their reason, because their texts contain ports. A request to retry later
// is logged only if it persists: each resource returns it when it was just created.
func (c *healthTracker) recordFailure(err error) (isNew bool) {
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
