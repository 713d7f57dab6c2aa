package coordination

import "time"

// Defaults of Bounds.
const (
	// DefaultStoreTime is S: how long the API server may take to store a write once it
	// has the response of the webhook.
	DefaultStoreTime = 1500 * time.Millisecond
	// DefaultDrift is D: by how much two clocks may differ while a lease runs out.
	DefaultDrift = 250 * time.Millisecond
)

// Intervals of the requests to the API server and between replicas.
const (
	// renewInterval is short compared with V, so that a slow renewal leaves time for the
	// next one. One write of a small object each is little, even for a busy API server.
	renewInterval = 750 * time.Millisecond
	// pollInterval is how long a follower may forward to a replica that leads no more,
	// and adds to the time without a leader after a crash.
	pollInterval = 500 * time.Millisecond
	// helloInterval is how long a replica that is ready may be unknown as a successor: a
	// rollout ends the leader some seconds after it.
	helloInterval = time.Second
	// leaseTimeout limits a request for the Lease: a leader that gets no response in
	// time sends the next renewal on a connection that may work. A loaded API server, or
	// a packet that is sent again, takes about a second.
	leaseTimeout = 1500 * time.Millisecond
)

// LeaseDuration returns the shortest lease for a timeout of the webhooks, in whole seconds.
// What is left of it for V lets the leader evaluate until a renewal that gets no response
// has failed: the shorter a lease is, the sooner another replica replaces a leader that
// has crashed.
func LeaseDuration(timeout time.Duration) time.Duration {
	least := timeout + DefaultStoreTime + DefaultDrift + renewInterval + leaseTimeout
	return (least + time.Second - 1).Truncate(time.Second)
}

// MaxLease is the longest lease. A replica waits no longer for one, whatever duration someone
// wrote into the Lease.
const MaxLease = time.Minute

// Bounds are the times that the protocol relies on. All are positive.
type Bounds struct {
	// Timeout is T of the webhooks that the server writes. A review may have another, of
	// at most MaxTimeout.
	Timeout time.Duration
	// Lease is how long a Lease is valid, in whole seconds.
	Lease time.Duration
	// Store is S, and Drift is D of the package comment.
	Store, Drift time.Duration
}

// NewBounds returns the bounds for a timeout of the webhooks and a lease; 0 means
// LeaseDuration.
func NewBounds(timeout, lease time.Duration) Bounds {
	if lease == 0 {
		lease = LeaseDuration(timeout)
	}
	return Bounds{Timeout: timeout, Lease: lease, Store: DefaultStoreTime, Drift: DefaultDrift}
}

// validity returns V for a review with a timeout.
func (b Bounds) validity(timeout time.Duration) time.Duration {
	return b.Lease - b.Store - b.Drift - timeout
}

// MaxTimeout returns the longest timeout of a webhook, in whole seconds, with which a
// leader that renews its Lease in time can evaluate a review.
func (b Bounds) MaxTimeout() time.Duration {
	return (b.validity(0) - renewInterval - 1).Truncate(time.Second)
}

// elapsed returns the time since t: the larger one of monotonic and wall time, because
// the monotonic clock stands still while a virtual machine is suspended.
func elapsed(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}
