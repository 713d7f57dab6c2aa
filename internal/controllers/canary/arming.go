package canary

import "sync"

const (
	// armingPasses consecutive runs that pass arm the webhooks, disarmingFailures
	// consecutive failures disarm them.
	armingPasses      = 3
	disarmingFailures = 2
)

// Arming determines whether the webhooks may have failurePolicy Fail. It starts
// disarmed, and alternating results leave it there.
type Arming struct {
	mu               sync.Mutex
	armed            bool
	passes, failures int
	changed          chan struct{}
}

// NewArming returns an Arming that is disarmed.
func NewArming() *Arming { return &Arming{changed: make(chan struct{}, 1)} }

// Adopt takes over the state of the previous leader, so that a rollout of working
// replicas does not disarm the webhooks in between. It has no effect between the
// first result and Reset.
func (a *Arming) Adopt(armed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.passes+a.failures == 0 {
		a.armed = armed
	}
}

// Armed reports whether the webhooks may have failurePolicy Fail.
func (a *Arming) Armed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.armed
}

// Changed returns a channel that receives a value when Armed changes.
func (a *Arming) Changed() <-chan struct{} { return a.changed }

// Reset forgets all results, so that the next leader's state can be adopted.
func (a *Arming) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armed, a.passes, a.failures = false, 0, 0
}

// Observe records a result. Overload changes nothing: an overloaded server responds, so
// no write is admitted without evaluation; disarming would admit all.
func (a *Arming) Observe(r Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.armed
	switch {
	case r.Outcome == Passed:
		a.passes, a.failures = a.passes+1, 0
		a.armed = a.armed || a.passes >= armingPasses
	case r.Busy():
	default:
		a.passes, a.failures = 0, a.failures+1
		a.armed = a.armed && a.failures < disarmingFailures
	}
	if a.armed != was {
		select {
		case a.changed <- struct{}{}:
		default: // a value is pending already
		}
	}
}
