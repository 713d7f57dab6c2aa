package cache

import "sync"

// peers is what the sources of one watcher have in common.
type peers struct {
	// news gets a token when a source has changed, for attend. nil if no one attends.
	news chan struct{}

	mu    sync.Mutex
	mends chan struct{}
	// reopened is closed when no review waits any more; nil if none does.
	reopened chan struct{}
	// changed counts the changes of sources.
	changed uint64
}

func newPeers() peers { return peers{news: make(chan struct{}, 1)} }

// mended returns what is closed when one of them works again. Where one does, the
// others may: an API server that has just started gives out its resources one
// after another.
func (p *peers) mended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mends == nil {
		p.mends = make(chan struct{})
	}
	return p.mends
}

func (p *peers) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mends != nil {
		close(p.mends)
		p.mends = nil
	}
}

// change books that a source has changed. Where one is blind now, reviews wait
// from this moment on until decide finds that they need not.
func (p *peers) change(blind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed++
	if blind && p.reopened == nil {
		p.reopened = make(chan struct{})
	}
	hint(p.news)
}

// changes returns the number of changes so far.
func (p *peers) changes() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// decide has reviews wait or not, as was found after so many changes. If there
// were more, it is found again.
func (p *peers) decide(changes uint64, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.changed != changes:
	case !waits:
		p.open()
	case p.reopened == nil:
		p.reopened = make(chan struct{})
	}
}

// release ends the wait of all reviews.
func (p *peers) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open()
}

func (p *peers) open() {
	if p.reopened != nil {
		close(p.reopened)
		p.reopened = nil
	}
}

// reopening returns what reviews wait for to be closed, nil if they do not wait.
func (p *peers) reopening() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reopened
}
