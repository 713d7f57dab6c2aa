package watch

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// SourceHealth tells how fresh what is known of one resource is.
type SourceHealth struct {
	// Source is the resource: one of Sources, or the name of the
	// CustomResourceDefinition of a policy kind.
	Source string
	// Synced tells that it was listed in full at least once.
	Synced bool
	// LastContact is when the API server last told anything: an event, a list,
	// or a bookmark, which come about once a minute. Zero means never; some
	// minutes ago means that the watch is dead, whatever Err says.
	LastContact time.Time
	// Err is why the resource cannot be watched at the moment, or nil.
	Err error
	// Lists counts full lists, and Failures the calls that failed. A watch
	// that keeps breaking shows in their growth.
	Lists, Failures uint64
}

// contact keeps the health of one source.
type contact struct {
	now func() time.Time

	mu     sync.Mutex
	health SourceHealth
}

func newContact(source string) *contact {
	return &contact{now: time.Now, health: SourceHealth{Source: source}}
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

// list tells that a full list arrived.
func (c *contact) list() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.health.LastContact = c.now()
	c.health.Synced = true
	c.health.Lists++
}

// opened tells that a watch is open, and reports whether that mends a failure.
// A list alone mends none: without a watch it ages at once.
func (c *contact) opened() (mended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mended = c.health.Err != nil
	c.health.LastContact, c.health.Err = c.now(), nil
	return mended
}

// failed tells that a call failed, and reports whether that is news: what an
// error says may differ each time, by a port if nothing else.
func (c *contact) failed(err error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news = c.health.Err == nil || apierrors.ReasonForError(c.health.Err) != apierrors.ReasonForError(err)
	c.health.Err = err
	c.health.Failures++
	return news
}
