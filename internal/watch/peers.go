package watch

import (
	"sync"
	"sync/atomic"
)

// peers is what the sources of one watcher have in common.
type peers struct {
	// dark counts those that are blind.
	dark atomic.Int64

	mu    sync.Mutex
	mends chan struct{}
}

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
