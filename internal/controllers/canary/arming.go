package canary

import "sync"

const (
	// armingPasses in a row arm the webhooks, disarmingFailures in a row disarm
	// them.
	armingPasses      = 3
	disarmingFailures = 2
)

// Arming says whether the webhooks may have failurePolicy Fail. It begins
// disarmed, and a canary that cannot make up its mind leaves it there.
type Arming struct {
	mu               sync.Mutex
	armed            bool
	passes, failures int
	changed          chan struct{}
}

// NewArming returns one that is not armed.
func NewArming() *Arming { return &Arming{changed: make(chan struct{}, 1)} }

// Adopt takes over what the leader before has left: a rollout of replicas that
// work shall not let writes pass unjudged in between. What was tried meanwhile
// goes before.
func (a *Arming) Adopt(armed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.passes+a.failures == 0 {
		a.armed = armed
	}
}

// Armed reports whether they may.
func (a *Arming) Armed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.armed
}

// Changed tells that Armed reports something else.
func (a *Arming) Changed() <-chan struct{} { return a.changed }

// Observe takes a result into account. An overloaded server changes nothing: it
// answers, so nothing passes unjudged, and without it everything would.
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
		default: // one that waits already is enough
		}
	}
}
