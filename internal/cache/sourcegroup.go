package cache

import "sync"

// sourceGroup is the state that the sources of one Watcher share.
type sourceGroup struct {
	// updated receives a token when a source changes. It is nil if updateWaiting does
	// not run.
	updated chan struct{}

	mu       sync.Mutex
	recovery chan struct{}
	// reconnected is closed when reviews need not wait any more; nil if none waits.
	reconnected chan struct{}
	// version counts the changes of sources.
	version uint64
}

func newSourceGroup() sourceGroup { return sourceGroup{updated: make(chan struct{}, 1)} }

// recovered returns a channel that is closed when a source recovers. Then the others
// may, too: a starting API server serves its resources one after another.
func (g *sourceGroup) recovered() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.recovery == nil {
		g.recovery = make(chan struct{})
	}
	return g.recovery
}

func (g *sourceGroup) notifyRecovered() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.recovery != nil {
		close(g.recovery)
		g.recovery = nil
	}
}

// recordChange records that a source has changed. If it is disconnected, reviews wait
// from now on until setWaiting ends that.
func (g *sourceGroup) recordChange(disconnected bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.version++
	if disconnected && g.reconnected == nil {
		g.reconnected = make(chan struct{})
	}
	signal(g.updated)
}

// currentVersion returns the number of changes so far.
func (g *sourceGroup) currentVersion() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.version
}

// setWaiting sets whether reviews wait, as evaluated at a version. It does nothing if
// the version is out of date: then it is evaluated again.
func (g *sourceGroup) setWaiting(changes uint64, waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.version != changes:
	case !waits:
		g.unblock()
	case g.reconnected == nil:
		g.reconnected = make(chan struct{})
	}
}

// close releases all waiting reviews.
func (g *sourceGroup) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unblock()
}

func (g *sourceGroup) unblock() {
	if g.reconnected != nil {
		close(g.reconnected)
		g.reconnected = nil
	}
}

// waitChannel returns the channel that reviews wait on, nil if they need not wait.
func (g *sourceGroup) waitChannel() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reconnected
}
