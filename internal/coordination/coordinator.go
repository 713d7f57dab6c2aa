package coordination

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"overrule.dev/overrule/internal/background"
)

// State is what a leader evaluates with: the cache, and the log of writes in flight.
type State interface {
	// Ready reports whether the cache is complete and not stale: only then can the
	// replica lead.
	Ready() bool
	// CatchUp returns once the cache, and the log, have everything that was stored
	// before the call. Its error is that of the context.
	CatchUp(ctx context.Context) error
	// Export returns the writes in flight, for Import on another replica.
	Export() (json.RawMessage, error)
	// Import replaces the log by the writes that another replica exported.
	Import(writes json.RawMessage) error
	// Reset removes all writes from the log.
	Reset()
	// AwaitEmpty waits until no write is in flight. Its error is that of the context.
	AwaitEmpty(ctx context.Context) error
}

// Options of a Coordinator. All but Work and Log are required.
type Options struct {
	// Leases is the client for the namespace of the Lease, and Name its name.
	Leases coordinationv1client.LeaseInterface
	Name   string
	// Identity is the name of this process: a restarted one has another (rule 4).
	Identity string
	// Address is where this replica accepts connections of others, as HOST:PORT.
	Address string
	Bounds  Bounds
	State   State
	Peers   *Client
	// Work, if set, runs while this replica leads. It may end after another replica
	// leads. Its error ends the Coordinator.
	Work    func(ctx context.Context) error
	Metrics *Metrics
	Log     logr.Logger
}

// role is what a replica does.
type role int

const (
	following role = iota
	// catchingUp: it holds the Lease, and its cache may lack what was stored before.
	catchingUp
	evaluating
	// stopped: it holds the Lease, and has stopped for good in this term (rule 8).
	stopped
)

func (r role) String() string {
	return [...]string{"follower", "leader, catching up with a consistent list", "leader", "leader, handing over"}[r]
}

// leader is the holder of the Lease as it was last read.
type leader struct {
	identity, address, term, protocol string
}

// Coordinator is the part of a replica in the protocol. Create it with New.
type Coordinator struct {
	opts   Options
	leases leases
	// wake receives a token when the Lease should be read, or the role reconsidered,
	// without waiting for the next poll.
	wake    chan struct{}
	started time.Time
	// work is the background work of the term before, which may be ending, and
	// workFailed receives its error.
	work       sync.WaitGroup
	workFailed chan error
	// renewalFailing is set while renewals fail. It belongs to Start.
	renewalFailing bool
	// left is closed when this replica does not lead any more, after HandOver.
	left     chan struct{}
	leftOnce sync.Once

	// transition is held while the role changes together with the log. It is acquired
	// before the lock of the log, and mu after it.
	transition sync.Mutex

	mu      sync.Mutex
	changed chan struct{} // closed when the result of place may have changed
	role    role
	term    string    // that this replica acquired, "" as a follower
	renewed time.Time // when the last successful renewal was sent
	leader  leader
	leaving bool
	members map[string]member
	// received is the handover whose log this replica has.
	received received
	// vacant is when the leader before this one evaluated last, as far as this replica
	// knows; zero if there was none.
	vacant time.Time
}

// New returns a Coordinator, which follows until it is started.
func New(o Options) *Coordinator {
	return &Coordinator{
		opts: o, leases: leases{o.Leases, o.Name}, started: time.Now(),
		wake: make(chan struct{}, 1), workFailed: make(chan error, 1), left: make(chan struct{}), changed: make(chan struct{}), members: make(map[string]member),
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica takes part.
func (c *Coordinator) NeedLeaderElection() bool { return false }

// Start takes part in the protocol until ctx ends, or Work fails. Call HandOver before.
func (c *Coordinator) Start(ctx context.Context) error {
	var hello sync.WaitGroup
	defer hello.Wait()
	defer c.work.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	hello.Go(func() { c.greet(ctx) })
	defer c.leftOnce.Do(func() { close(c.left) })
	var seen leaseObservation
	failing := false
	for ctx.Err() == nil {
		if c.isLeaving() { // here it does not lead
			c.leftOnce.Do(func() { close(c.left) })
		}
		lease, err := c.leases.read(ctx)
		if err != nil {
			if !failing && ctx.Err() == nil {
				c.opts.Log.Error(err, "cannot read the Lease; retrying")
			}
			failing = true
			c.sleep(ctx, pollInterval)
			continue
		}
		failing = false
		seen.update(lease, time.Now())
		c.setLeader(lease)
		left := c.untilAcquirable(seen)
		if left <= 0 && c.acquire(ctx, seen) {
			seen = leaseObservation{} // a term that is over is read again
			select {
			case err := <-c.workFailed:
				return err
			default:
				continue
			}
		}
		c.sleep(ctx, min(max(left, minPause), pollInterval))
	}
	return nil
}

// minPause is the pause after an attempt to acquire the Lease that failed.
const minPause = 20 * time.Millisecond

// sleep waits for d, until wake, or until ctx ends.
func (c *Coordinator) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.wake:
	case <-ctx.Done():
	}
}

// Wake makes the replica read the Lease at once.
func (c *Coordinator) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// leaseObservation is a state of the Lease, and since when it is unchanged by the clock of this
// replica.
type leaseObservation struct {
	lease record
	since time.Time
}

func (s *leaseObservation) update(lease record, now time.Time) {
	if s.since.IsZero() || s.lease.version() != lease.version() {
		s.since = now
	}
	s.lease = lease
}

// untilAcquirable returns after what time this replica may take the Lease (rule 4): at
// most 0 if now.
func (c *Coordinator) untilAcquirable(s leaseObservation) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.leaving:
		return pollInterval
	case !c.opts.State.Ready():
		return pollInterval
	case s.lease.annotation(AnnotationReleased) != "", c.transferredToThis(s.lease):
		return 0
	}
	// Not elapsed: a wall clock that is set must not shorten the wait.
	return s.lease.duration(c.opts.Bounds.Lease) - time.Since(s.since)
}

// transferredToThis reports whether the Lease was transferred to this replica, and it has
// the log of that term. c.mu is held.
func (c *Coordinator) transferredToThis(lease record) bool {
	from := lease.annotation(AnnotationTransferred)
	return from != "" && lease.holder() == c.opts.Identity && c.received.term == from
}

// acquire tries to take the Lease and, if that succeeds, leads until the term is over.
// It reports whether it led.
func (c *Coordinator) acquire(ctx context.Context, seen leaseObservation) bool {
	lease, kind, ok := c.take(ctx, seen)
	if ok {
		c.lead(ctx, lease, kind)
	}
	return ok
}

// take tries to take the Lease. It returns the Lease, and the kind of the handover.
func (c *Coordinator) take(ctx context.Context, seen leaseObservation) (taken record, kind string, ok bool) {
	c.work.Wait() // of an earlier term
	c.transition.Lock()
	defer c.transition.Unlock()
	if c.untilAcquirable(seen) > 0 {
		return record{}, "", false // another log was received meanwhile
	}
	lease := seen.lease
	if lease.lease == nil {
		lease = record{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: c.opts.Name}}}
	}
	sent := time.Now()
	taken, err := c.leases.write(ctx, lease.acquired(c.opts.Identity, c.opts.Address, c.opts.Bounds.Lease))
	if err != nil {
		if !changed(err) && ctx.Err() == nil {
			c.opts.Log.Error(err, "cannot take the Lease; retrying")
		}
		return record{}, "", false
	}
	return taken, c.beginTerm(seen, taken, sent), true
}

// lead evaluates in the term of a Lease that was just acquired, until it is lost or
// handed over, or ctx ends. kind is that of the handover by which it was acquired.
func (c *Coordinator) lead(ctx context.Context, lease record, kind string) {
	id := lease.term() // the same in all renewals
	c.opts.Log.Info("acquired the Lease", "term", id, "handover", kind)
	term, end := context.WithCancel(ctx)
	var catchUp sync.WaitGroup
	defer catchUp.Wait()
	defer end()
	catchUp.Go(func() { c.catchUp(term, id, kind) })
	if c.opts.Work != nil {
		c.work.Go(func() { c.runWork(term) })
	}
	for {
		c.sleep(ctx, renewInterval)
		switch {
		case ctx.Err() != nil, len(c.workFailed) > 0:
			c.stepDown("shutdown")
			return
		case c.isLeaving(), c.shouldHandOver():
			end()
			c.handOver(ctx, lease)
			return
		}
		next, err := c.renew(ctx, lease)
		if errors.Is(err, errLost) {
			c.stepDown(err.Error())
			return
		}
		lease = next
	}
}

// runWork runs the background work of a term.
func (c *Coordinator) runWork(ctx context.Context) {
	if err := c.opts.Work(ctx); err != nil && ctx.Err() == nil {
		c.workFailed <- err
		c.Wake()
	}
}

// beginTerm makes this replica, which acquired the Lease by a renewal that it sent at a
// time, the leader that catches up. It returns the kind of the handover. c.transition is
// held.
func (c *Coordinator) beginTerm(before leaseObservation, lease record, sent time.Time) string {
	kind, vacant, hasLog := c.handoverFrom(before)
	if !hasLog {
		c.opts.State.Reset() // what was received belongs to another term
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received, c.vacant = received{}, vacant
	c.role, c.term, c.renewed, c.leader = catchingUp, lease.term(), sent, leaderOf(lease)
	c.notify()
	return kind
}

// handoverFrom returns how this replica takes over a Lease, when the leader before it
// evaluated last, zero if there was none, and whether it has the log of that leader.
func (c *Coordinator) handoverFrom(before leaseObservation) (kind string, vacant time.Time, hasLog bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.transferredToThis(before.lease):
		return handoverGraceful, c.received.stoppedAt, true
	case before.lease.annotation(AnnotationReleased) != "":
		return handoverGraceful, before.since, false
	case before.lease.holder() != "":
		return handoverCrash, before.since, false
	}
	return handoverCrash, time.Time{}, false
}

// catchUp makes the replica evaluate once its cache has everything that was stored
// before it acquired the Lease (rule 6).
func (c *Coordinator) catchUp(ctx context.Context, term, kind string) {
	if err := c.opts.State.CatchUp(ctx); err != nil {
		return // the term is over
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.role != catchingUp || c.term != term {
		return
	}
	c.role = evaluating
	if !c.vacant.IsZero() {
		took := time.Since(c.vacant)
		c.opts.Metrics.handedOver(kind, took)
		c.opts.Log.Info("handover complete", "kind", kind, "withoutLeader", took.Round(time.Millisecond).String())
	}
	c.opts.Log.Info("evaluating", "term", term)
	c.notify()
}

// errLost is returned if another replica may hold the Lease.
var errLost = errors.New("the Lease was lost")

// renew renews the Lease, and returns it as it is then. It returns errLost if this
// replica does not hold it any more (rule 10). After any other failure the replica
// evaluates for as long as the last renewal permits.
func (c *Coordinator) renew(ctx context.Context, lease record) (record, error) {
	sent := time.Now()
	next, err := c.leases.write(ctx, lease.held(c.opts.Identity, c.opts.Address, c.opts.Bounds.Lease))
	if err == nil {
		c.logRenewal(nil)
		c.mu.Lock()
		c.renewed = sent
		c.notify()
		c.mu.Unlock()
		return next, nil
	}
	if !changed(err) {
		c.logRenewal(err)
		return lease, nil // it may have been written: the next write shows it
	}
	c.opts.Log.V(1).Info("the Lease has changed", "cause", err.Error())
	read, err := c.leases.read(ctx)
	switch {
	case err != nil:
		return lease, nil //nolint:nilerr // the next renewal conflicts again
	case read.term() != lease.term(), read.annotation(AnnotationReleased) != "", read.annotation(AnnotationTransferred) != "":
		return lease, errLost
	}
	c.Wake() // someone has edited it, or a response was lost
	return read, nil
}

// shouldHandOver reports whether this replica evaluates with a stale cache, so that it
// rejects writes, and another replica can do better.
func (c *Coordinator) shouldHandOver() bool {
	if c.opts.State.Ready() {
		return false
	}
	_, err := c.successor()
	return err == nil
}

// logRenewal logs the result of a renewal if it is another one than the last.
func (c *Coordinator) logRenewal(err error) {
	switch {
	case err != nil && !c.renewalFailing:
		c.opts.Log.Error(err, "cannot renew the Lease; retrying")
	case err == nil && c.renewalFailing:
		c.opts.Log.Info("renewed the Lease again")
	}
	c.renewalFailing = err != nil
}

// stepDown makes this replica a follower.
func (c *Coordinator) stepDown(reason string) {
	c.transition.Lock()
	defer c.transition.Unlock()
	c.mu.Lock()
	c.opts.Log.Info("stepping down", "term", c.term, "reason", reason)
	c.role, c.term, c.leader = following, "", leader{}
	c.notify()
	c.mu.Unlock()
	c.opts.State.Reset()
}

// setLeader records the holder of the Lease, as a follower reads it.
func (c *Coordinator) setLeader(lease record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next := leaderOf(lease); next != c.leader {
		c.leader = next
		c.notify()
	}
}

// leaderOf returns the holder of a Lease, zero if there is none.
func leaderOf(lease record) leader {
	if lease.holder() == "" || lease.annotation(AnnotationReleased) != "" {
		return leader{}
	}
	return leader{
		identity: lease.holder(), address: lease.annotation(AnnotationAddress),
		term: lease.term(), protocol: lease.annotation(AnnotationProtocol),
	}
}

// notify wakes those that wait in Await. c.mu is held.
func (c *Coordinator) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Coordinator) isLeaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// greet tells the leader regularly that this replica can succeed it, until ctx ends.
func (c *Coordinator) greet(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		to, leads, leaving, next := c.leader, c.role != following, c.leaving, c.changed
		c.mu.Unlock()
		if !leads && !leaving && to.address != "" && to.identity != c.opts.Identity && c.opts.State.Ready() {
			greeting, cancel := context.WithTimeout(ctx, helloInterval)
			if err := c.opts.Peers.hello(greeting, to.address, c.member()); err != nil {
				c.opts.Log.V(1).Info("cannot reach the leader", "address", to.address, "cause", err.Error())
			}
			cancel()
		}
		select {
		case <-next: // greet a new leader at once
			background.Sleep(ctx, minPause)
		case <-time.After(helloInterval):
		case <-ctx.Done():
		}
	}
}
