package coordination

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Place is where a write is evaluated: by this replica, or by another one.
type Place struct {
	// Term is that of the leader.
	Term string
	// Address of the leader as HOST:PORT, empty for this replica.
	Address string
}

// Local reports whether this replica evaluates.
func (p Place) Local() bool { return p.Address == "" }

var (
	// ErrNoLeader is in the error of Await if no replica evaluates writes.
	ErrNoLeader = errors.New("no replica evaluates writes at the moment")
	// ErrProtocol is in the error of Await if the leader speaks another version of the
	// protocol.
	ErrProtocol = errors.New("the leader speaks another version of the protocol between replicas")
	// ErrNotLeading is in the error of Check.
	ErrNotLeading = errors.New("this replica does not evaluate writes in this term any more")
)

// refusedPause is how long Await waits before it returns a place again that refused.
const refusedPause = 100 * time.Millisecond

// Await returns where to evaluate a write whose webhook has a timeout, which is at most the
// MaxTimeout of Bounds. It waits until some replica evaluates, or ctx ends. except is a
// place that has just refused the write, or failed, the zero Place for none. Errors:
// ErrNoLeader, ErrProtocol.
func (c *Coordinator) Await(ctx context.Context, timeout time.Duration, except Place) (Place, error) {
	if except != (Place{}) {
		c.Wake()
	}
	for {
		p, ok, next, err := c.place(timeout)
		if err != nil || ok && p != except {
			return p, err
		}
		var again <-chan time.Time
		if ok {
			again = time.After(refusedPause)
		}
		select {
		case <-next:
		case <-again:
			except = Place{}
		case <-ctx.Done():
			return Place{}, fmt.Errorf("%w: %w", ErrNoLeader, ctx.Err())
		}
	}
}

// place returns where a write is evaluated now, unless that is not known, and a channel
// that is closed when that may have changed.
func (c *Coordinator) place(timeout time.Duration) (p Place, ok bool, next <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.role == evaluating:
		return Place{Term: c.term}, c.valid(timeout), c.changed, nil
	case c.role != following, c.leader.identity == "", c.leader.identity == c.opts.Identity:
		return Place{}, false, c.changed, nil
	case c.leader.protocol != Protocol:
		return Place{}, false, nil, fmt.Errorf("%w: %s has %q, this replica %q", ErrProtocol, c.leader.identity, c.leader.protocol, Protocol)
	}
	return Place{Term: c.leader.term, Address: c.leader.address}, c.leader.address != "", c.changed, nil
}

// valid reports whether a review with a timeout may be evaluated now: its write is stored
// before another replica can take the Lease (rule 1). c.mu is held.
func (c *Coordinator) valid(timeout time.Duration) bool {
	return elapsed(c.renewed) < c.opts.Bounds.validity(timeout)
}

// Check returns ErrNotLeading unless this replica evaluates in the term of a place, and
// the Lease is valid for a review with a timeout. It is called when an admitted write
// enters the log (rule 2), and before the response (rule 3).
func (c *Coordinator) Check(p Place, timeout time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.role != evaluating || c.term != p.Term:
		return ErrNotLeading
	case !c.valid(timeout):
		return fmt.Errorf("%w: the Lease was not renewed for %s", ErrNotLeading, elapsed(c.renewed).Round(time.Millisecond))
	}
	return nil
}

// Status describes the role of this replica for /readyz.
func (c *Coordinator) Status() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.role != following:
		return fmt.Sprintf("%s, in term %s", c.role, c.term)
	case c.leader.identity == "":
		return "follower; no replica leads"
	}
	return fmt.Sprintf("follower; the leader is %s at %s", c.leader.identity, c.leader.address)
}

// Healthy is a readiness check: it returns ErrProtocol while the leader speaks another
// version of the protocol.
func (c *Coordinator) Healthy() error {
	_, _, _, err := c.place(0)
	return err
}

// Leading reports whether this replica evaluates writes: it is the leader, and renews the
// Lease in time.
func (c *Coordinator) Leading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.role == evaluating && c.valid(c.opts.Bounds.Timeout)
}

// Accepts reports whether this replica leads in a term: it evaluates what is forwarded in
// it, if need be once it has caught up.
func (c *Coordinator) Accepts(term string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term == term && (c.role == catchingUp || c.role == evaluating)
}
