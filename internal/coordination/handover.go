package coordination

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kinds of handover, in metrics and logs.
const (
	// handoverGraceful: the leader before this one stopped evaluating, and released or
	// transferred the Lease.
	handoverGraceful = "graceful"
	// handoverCrash: the Lease ran out.
	handoverCrash = "crash"
)

// Timeouts of a handover.
const (
	// sendTimeout is how long the successor may take to confirm the log.
	sendTimeout = 2 * time.Second
	// emptyTimeout is how long a leader without a successor waits until its log is
	// empty.
	emptyTimeout = 3 * time.Second
	// memberTimeout is after what time without a greeting a replica is no successor.
	memberTimeout = 3 * helloInterval
)

// member is another replica, which greets the leader regularly.
type member struct {
	Identity string `json:"identity"`
	Address  string `json:"address"`
	// Started is when its process started: the newest one is the best successor, since
	// a rollout ends the oldest.
	Started time.Time `json:"started"`

	seen time.Time
}

// handover is what a leader sends to its successor.
type handover struct {
	// Term of the leader, which has stopped evaluating.
	Term string `json:"term"`
	// Stopped is how long ago it stopped.
	Stopped time.Duration `json:"stopped"`
	// Writes are the writes in flight, as State.Export returned them.
	Writes json.RawMessage `json:"writes"`
}

// received is a handover that this replica has received.
type received struct {
	term      string
	stoppedAt time.Time
}

func (c *Coordinator) member() member {
	return member{Identity: c.opts.Identity, Address: c.opts.Address, Started: c.started}
}

// hello records a replica that can succeed this one.
func (c *Coordinator) hello(m member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.seen = time.Now()
	c.members[m.Identity] = m
	for identity, other := range c.members {
		if time.Since(other.seen) > memberTimeout {
			delete(c.members, identity)
		}
	}
}

// errNoSuccessor is returned if no replica has greeted the leader.
var errNoSuccessor = errors.New("no other replica is ready")

// successor returns the replica to hand over to.
func (c *Coordinator) successor() (member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var best member
	for _, m := range c.members {
		if time.Since(m.seen) > memberTimeout {
			continue
		}
		if best.Identity == "" || cmp.Or(m.Started.Compare(best.Started), cmp.Compare(m.Identity, best.Identity)) > 0 {
			best = m
		}
	}
	if best.Identity == "" {
		return best, errNoSuccessor
	}
	return best, nil
}

// HandOver ends the part of this replica as a leader: it stops evaluating and hands over
// to another replica. It returns when that is done, or ctx ends. The replica continues to
// follow, and never leads again.
func (c *Coordinator) HandOver(ctx context.Context) {
	c.mu.Lock()
	c.leaving = true
	c.mu.Unlock()
	c.Wake()
	select {
	case <-c.left:
	case <-ctx.Done():
	}
}

// handOver hands over the Lease that this replica holds (rule 8). Whatever fails, it does
// not evaluate any more: the Lease then runs out.
func (c *Coordinator) handOver(ctx context.Context, lease record) {
	stoppedAt := c.stop()
	err := c.handOverTo(ctx, lease, stoppedAt)
	if err != nil {
		c.opts.Log.Info("cannot transfer the Lease; waiting for the log of writes in flight to be empty", "cause", err.Error())
		err = c.release(ctx, lease)
	}
	if err != nil {
		c.opts.Log.Error(err, "cannot release the Lease; another replica takes it when it has run out")
	}
	c.stepDown("handover")
}

// stop ends evaluation for good in this term, and returns the time of that.
func (c *Coordinator) stop() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.role = stopped
	c.notify()
	return time.Now()
}

// handOverTo sends the log to a successor, and then transfers the Lease to it.
func (c *Coordinator) handOverTo(ctx context.Context, lease record, stoppedAt time.Time) error {
	to, err := c.successor()
	if err != nil {
		return err
	}
	writes, err := c.opts.State.Export()
	if err != nil {
		return fmt.Errorf("export the writes in flight: %w", err)
	}
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := c.opts.Peers.handOver(sending, to.Address, handover{Term: lease.term(), Stopped: time.Since(stoppedAt), Writes: writes}); err != nil {
		return fmt.Errorf("hand over to %s: %w", to.Identity, err)
	}
	if err := c.mark(ctx, lease, AnnotationTransferred, to.Identity, to.Address); err != nil {
		return err
	}
	c.opts.Log.Info("transferred the Lease", "to", to.Identity, "term", lease.term())
	if err := c.opts.Peers.wake(sending, to.Address); err != nil {
		c.opts.Log.V(1).Info("cannot wake the successor; it reads the Lease later", "cause", err.Error())
	}
	return nil
}

// release waits until no write is in flight, and releases the Lease.
func (c *Coordinator) release(ctx context.Context, lease record) error {
	waiting, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	if err := c.opts.State.AwaitEmpty(waiting); err != nil {
		return fmt.Errorf("wait for the writes in flight: %w", err)
	}
	if err := c.mark(ctx, lease, AnnotationReleased, "", ""); err != nil {
		return err
	}
	c.opts.Log.Info("released the Lease", "term", lease.term())
	return nil
}

// markAttempts is how often mark writes the Lease.
const markAttempts = 3

// mark writes a mark to the Lease of a term that this replica has ended.
func (c *Coordinator) mark(ctx context.Context, lease record, mark, holder, address string) error {
	term := lease.term()
	var err error
	for range markAttempts {
		if _, err = c.leases.write(ctx, lease.marked(mark, holder, address)); err == nil || ctx.Err() != nil {
			return err
		}
		// A response may be lost, or someone has edited the Lease.
		read, failed := c.leases.read(ctx)
		switch {
		case failed != nil:
		case read.annotation(mark) == term && read.holder() == holder:
			return nil
		case read.term() != term:
			return errLost
		default:
			lease = read
		}
	}
	return err
}

var (
	// errNotFollower is returned for a handover to a replica that cannot lead.
	errNotFollower = errors.New("this replica does not follow, or is shutting down")
	// errNotReady is returned for a handover to a replica whose cache is not complete.
	errNotReady = errors.New("the cache of this replica is not complete")
)

// receive takes the log of a leader that hands over. The Lease follows.
func (c *Coordinator) receive(h handover) error {
	c.transition.Lock()
	defer c.transition.Unlock()
	if err := c.prepareToReceive(); err != nil {
		return err
	}
	if err := c.opts.State.Import(h.Writes); err != nil {
		return fmt.Errorf("import the writes in flight: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = received{term: h.Term, stoppedAt: time.Now().Add(-h.Stopped)}
	return nil
}

// prepareToReceive forgets an earlier handover. It returns an error if this replica
// cannot take one.
func (c *Coordinator) prepareToReceive() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.role != following, c.leaving:
		return errNotFollower
	case !c.opts.State.Ready():
		return errNotReady
	}
	c.received = received{}
	return nil
}
