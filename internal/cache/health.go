package cache

import (
	"strconv"
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
	// changes is notified of each change but LastContact.
	changes *broadcast
	// onRestore is called when storage was restored to an earlier state.
	onRestore func(restore)

	mu     sync.Mutex
	health SourceHealth
	// watchOpen is true while a watch is open. A streaming watch is connected only
	// once its initial list is complete.
	watchOpen bool
	// requestedAt is when the current or the last full list was requested, and listedAt
	// when the last one that is complete was.
	requestedAt, listedAt time.Time
	// relistFrom is when the source expired: until a list that was requested since then
	// is complete, it is not connected, however short the time without a watch is.
	relistFrom time.Time
	// reached is the resourceVersion that the source has reached: all versions of a
	// resource are numbers that grow with each write, and a watch delivers events in
	// their order. It is 0 if it is not known. objects is the number of objects then,
	// with those that the target ignores.
	reached uint64
	objects int
	// failingSince is when calls started to fail, zero if the last one succeeded, and
	// failedAt when the last one failed.
	failingSince, failedAt time.Time
	// lastLogged is the last failure that was logged since then.
	lastLogged error
}

func newHealthTracker(source string) *healthTracker {
	return &healthTracker{
		now: time.Now, changes: &broadcast{}, onRestore: func(restore) {}, health: SourceHealth{Source: source},
	}
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
	state.Source, state.Kind, state.Err = h.health.Source, h.health.Kind, nil
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

// recordContact records that something arrived.
func (h *healthTracker) recordContact() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.health.LastContact = h.now()
}

// recordEvent records that the target has an event of a watch: how many objects it adds.
func (h *healthTracker) recordEvent(version string, added int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.health.LastContact = h.now()
	h.reach(version)
	h.objects += added
}

// reach sets the version that was reached, unless it is not a number.
func (h *healthTracker) reach(version string) {
	if n, err := strconv.ParseUint(version, 10, 64); err == nil {
		h.reached = n
	}
}

// reachedVersion returns the resourceVersion that the source has reached.
func (h *healthTracker) reachedVersion() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reached
}

// listRequested records that a full list is about to be requested.
func (h *healthTracker) listRequested() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requestedAt = h.now()
}

// recordList records a full list and reports whether it ends a failure that was logged.
// A list without a watch does not: it ages at once.
func (h *healthTracker) recordList(version string, objects int) (recovered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.changes.notify()
	before := h.reached
	if h.reach(version); h.reached < before {
		h.onRestore(restore{h.requestedAt, &RestoredError{h.health.Source, h.reached, before}})
	}
	h.listedAt, h.objects = h.requestedAt, objects
	h.health.LastContact = h.now()
	h.health.Synced = true
	h.health.Lists++
	if !h.isExpired() {
		h.health.RestoredAt = time.Time{}
	}
	if h.watchOpen {
		return h.markConnected()
	}
	h.markDisconnected()
	return false
}

// watchOpened records that a watch is open, and reports whether it ends a failure that
// was logged. A streaming watch does so when its list is complete: see recordList.
func (h *healthTracker) watchOpened(listsFirst bool) (recovered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.changes.notify()
	h.watchOpen = true
	h.health.LastContact = h.now()
	return !listsFirst && h.markConnected()
}

// watchClosed records that the watch has ended.
func (h *healthTracker) watchClosed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.changes.notify()
	h.watchOpen = false
	h.markDisconnected()
}

// expire makes the source stale until it has been listed again, and cause its error.
func (h *healthTracker) expire(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.changes.notify()
	if !h.health.Synced {
		return
	}
	now := h.now()
	h.relistFrom, h.health.Err, h.health.DisconnectedSince = now, cause, now.Add(-StaleAfter-1)
	if isRestored(cause) {
		h.health.RestoredAt, h.reached = now, 0
	}
}

func (h *healthTracker) isExpired() bool { return h.listedAt.Before(h.relistFrom) }

// listedSince reports whether a full list is complete that was requested at a time or
// later.
func (h *healthTracker) listedSince(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.listedAt.Before(t)
}

// verify reports whether the target has a state of a consistent list, or a later one. If
// so, it counts as listed when that was requested.
//
// Either the source has reached its version, or it has reached that of its newest object,
// and has as many objects. Then it has all objects of the list: each event in between is
// of an object that does not exist any more, and would leave it with fewer.
func (h *healthTracker) verify(list *metadataList) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.health.Synced, h.isExpired():
		return false
	case h.reached >= list.version, h.reached >= list.newest && h.objects == len(list.objects):
		if list.requested.After(h.listedAt) {
			h.listedAt = list.requested
		}
		return true
	}
	return false
}

func (h *healthTracker) markConnected() (recovered bool) {
	if h.isExpired() {
		return false
	}
	recovered = h.lastLogged != nil
	h.health.DisconnectedSince, h.health.Err, h.failingSince, h.lastLogged = time.Time{}, nil, time.Time{}, nil
	return recovered
}

func (h *healthTracker) markDisconnected() {
	if h.health.Synced && h.health.DisconnectedSince.IsZero() {
		h.health.DisconnectedSince = h.now()
	}
}

// needsRelist reports whether the watch was disconnected for so long that it must not
// resume: unlike the end of a list, no event shows when a resumed watch has caught up. The
// same holds if the source has expired.
func (h *healthTracker) needsRelist() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isExpired() || h.health.stale(h.now()) && !h.listedAt.After(h.health.DisconnectedSince)
}

// isSilent reports whether an open watch has received nothing for so long that it must
// be dead.
func (h *healthTracker) isSilent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watchOpen && h.now().Sub(h.health.LastContact) > silenceTimeout
}

// failedSince reports whether a call has failed at a time or later.
func (h *healthTracker) failedSince(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.health.Err != nil && !h.failedAt.Before(t)
}

// isForbidden reports whether the source was never listed, and was forbidden at a time or
// later.
func (h *healthTracker) isForbidden(t time.Time) bool {
	state := h.get()
	return !state.Synced && apierrors.IsForbidden(state.Err) && h.failedSince(t)
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
	defer h.changes.notify()
	h.failedAt = h.now()
	if h.failingSince.IsZero() {
		h.failingSince = h.failedAt
	}
	h.health.Err = err
	h.health.Failures++
	if apierrors.IsTooManyRequests(err) && h.now().Sub(h.failingSince) < StaleAfter {
		return false
	}
	if h.lastLogged != nil && apierrors.ReasonForError(h.lastLogged) == apierrors.ReasonForError(err) {
		return false
	}
	h.lastLogged = err
	return true
}
