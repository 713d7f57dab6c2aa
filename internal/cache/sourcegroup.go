package cache

import "sync"

// peers is what the sources of one watcher have in common.
type sourceGroup struct {
	// news gets a token when a source has changed, for attend. nil if no one attends.
	updated chan struct{}

	mu    sync.Mutex
	recovery chan struct{}
	// reopened is closed when no review waits any more; nil if none does.
	reconnected chan struct{}
	// changed counts the changes of sources.
	version uint64
}

func newSourceGroup() sourceGroup { return sourceGroup{updated: make(chan struct{}, 1)} }

// mended returns what is closed when one of them works again. Where one does, the
// others may: an API server that has just started gives out its resources one
// after another.
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

// change books that a source has changed. Where one is blind now, reviews wait
// from this moment on until decide finds that they need not.
func (p *sourceGroup) recordChange(blind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	if blind && p.reconnected == nil {
		p.reconnected = make(chan struct{})
	}
	signal(p.updated)
}

// changes returns the number of changes so far.
func (p *sourceGroup) currentVersion() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// decide has reviews wait or not, as was found after so many changes. If there
// were more, it is found again.
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

// release ends the wait of all reviews.
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

// reopening returns what reviews wait for to be closed, nil if they do not wait.
func (p *sourceGroup) waitChannel() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reconnected
}
