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
func (p *sourceGroup) recovered() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.recovery == nil {
		p.recovery = make(chan struct{})
	}
	return p.recovery
}

func (p *sourceGroup) notifyRecovered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.recovery != nil {
		close(p.recovery)
		p.recovery = nil
	}
}

// recordChange records that a source has changed. If it is disconnected, reviews wait
// from now on until setWaiting ends that.
func (p *sourceGroup) recordChange(disconnected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	if disconnected && p.reconnected == nil {
		p.reconnected = make(chan struct{})
	}
	signal(p.updated)
}

// currentVersion returns the number of changes so far.
func (p *sourceGroup) currentVersion() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// setWaiting sets whether reviews wait, as evaluated at a version. It does nothing if
// the version is out of date: then it is evaluated again.
func (p *sourceGroup) setWaiting(changes uint64, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.version != changes:
	case !waits:
		p.unblock()
	case p.reconnected == nil:
		p.reconnected = make(chan struct{})
	}
}

// close releases all waiting reviews.
func (p *sourceGroup) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unblock()
}

func (p *sourceGroup) unblock() {
	if p.reconnected != nil {
		close(p.reconnected)
		p.reconnected = nil
	}
}

// waitChannel returns the channel that reviews wait on, nil if they need not wait.
func (p *sourceGroup) waitChannel() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reconnected
}
