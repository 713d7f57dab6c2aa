package cache

import (
	"errors"
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
	// RestoredAt is when storage was found to be restored to an earlier state. It is zero
	// once the resource has been listed again.
	RestoredAt time.Time
	// Err is why the resource cannot be watched at the moment, or nil.
	Err error
	// Lists counts full lists, and Failures failed calls. Both grow quickly if a watch
	// keeps breaking.
	Lists, Failures uint64
}

// UpToDateAt returns when the cached state last equaled that of the API server; zero means
// never. It may be about a minute ago if nothing changes.
func (h SourceHealth) UpToDateAt() time.Time {
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
	// expired is set if the resource must be listed again, however short the time
	// without a watch is.
	expired bool
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
func (h *healthTracker) inherit(earlier *healthTracker) {
	state := earlier.get()
	if !state.Synced {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	state.Source, state.Err = h.health.Source, nil
	if state.DisconnectedSince.IsZero() {
		state.DisconnectedSince = h.now()
	}
	h.health = state
}

func (h *healthTracker) get() SourceHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.health
}

// recordEvent records that an event or a bookmark arrived.
func (h *healthTracker) recordEvent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.health.LastContact = h.now()
}

// recordList records a full list and reports whether it ends a failure that was logged.
// A list without a watch does not: it ages at once.
func (h *healthTracker) recordList() (recovered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastList, h.expired, h.health.RestoredAt = h.now(), false, time.Time{}
	h.health.LastContact = h.lastList
	h.health.Synced = true
	h.health.Lists++
	if h.watchOpen {
		return h.markConnected()
	}
	h.markDisconnected(h.lastList)
	return false
}

// watchOpened records that a watch is open, and reports whether it ends a failure that
// was logged. A streaming watch does so when its list is complete: see recordList.
func (h *healthTracker) watchOpened(listsFirst bool) (recovered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchOpen = true
	h.health.LastContact = h.now()
	return !listsFirst && !h.expired && h.markConnected()
}

// watchClosed records that the watch has ended.
func (h *healthTracker) watchClosed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchOpen = false
	h.markDisconnected(h.now())
}

// markStalled records that nothing was read from the watch since a time, whether or not
// it is open.
func (h *healthTracker) markStalled(since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.markDisconnected(since)
}

// expire makes the source stale until its next full list, and cause its error.
func (h *healthTracker) expire(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.health.Synced {
		return
	}
	now := h.now()
	h.expired, h.health.Err, h.health.DisconnectedSince = true, cause, now.Add(-StaleAfter-1)
	if _, restored := errors.AsType[*RestoredError](cause); restored {
		h.health.RestoredAt = now
	}
	if h.group != nil {
		h.group.recordChange(true)
	}
}

// listedSince reports whether a full list has ended after a time, or must be taken.
func (h *healthTracker) listedSince(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.expired || h.lastList.After(t)
}

func (h *healthTracker) markConnected() (recovered bool) {
	recovered = h.lastLogged != nil
	failed, blind := h.health.Err != nil, !h.health.DisconnectedSince.IsZero()
	h.health.DisconnectedSince, h.health.Err, h.failingSince, h.lastLogged = time.Time{}, nil, time.Time{}, nil
	if h.group != nil && failed {
		h.group.notifyRecovered()
	}
	if h.group != nil && blind {
		h.group.recordChange(false)
	}
	return recovered
}

// join adds the source to a group.
func (h *healthTracker) join(s *sourceGroup) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.group = s
	s.recordChange(!h.health.DisconnectedSince.IsZero())
}

// leave removes the source from its group.
func (h *healthTracker) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.group != nil {
		h.group.recordChange(false)
	}
	h.group = nil
}

func (h *healthTracker) markDisconnected(since time.Time) {
	if !h.health.Synced || !h.health.DisconnectedSince.IsZero() {
		return
	}
	h.health.DisconnectedSince = since
	if h.group != nil {
		h.group.recordChange(true)
	}
}

// needsRelist reports whether the watch was disconnected for so long that it must not
// resume: unlike the end of a list, no event shows when a resumed watch has caught up. The
// same holds if the source has expired.
func (h *healthTracker) needsRelist() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.expired || h.health.stale(h.now()) && !h.lastList.After(h.health.DisconnectedSince)
}

// isSilent reports whether an open watch has received nothing for so long that it must
// be dead.
func (h *healthTracker) isSilent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watchOpen && h.now().Sub(h.health.LastContact) > silenceTimeout
}

// listFailure returns why a source was never listed, and nil while it may still be
// listed soon.
func (h *healthTracker) listFailure(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.health.Synced || h.failingSince.IsZero() || now.Sub(h.failingSince) <= initialListTimeout {
		return nil
	}
	return h.health.Err
}

// recordFailure records a failed call and reports whether to log it. Errors are
// compared by their reason, because their texts contain ports. A request to retry later
// is logged only if it persists: each resource returns it when it was just created.
func (h *healthTracker) recordFailure(err error) (isNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failingSince.IsZero() {
		h.failingSince = h.now()
	}
	h.health.Err = err
	h.health.Failures++
	if h.group != nil {
		h.group.recordChange(false)
	}
	if apierrors.IsTooManyRequests(err) && h.now().Sub(h.failingSince) < StaleAfter {
		return false
	}
	if h.lastLogged != nil && apierrors.ReasonForError(h.lastLogged) == apierrors.ReasonForError(err) {
		return false
	}
	h.lastLogged = err
	return true
}
