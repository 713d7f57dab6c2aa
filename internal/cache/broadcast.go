package cache

import "sync"

// broadcast wakes all that wait for a change of what is read: of the health of a source,
// or of the set of sources.
type broadcast struct {
	mu   sync.Mutex
	next chan struct{} // nil if nothing waits
}

// changed returns a channel that is closed by the next notify.
func (b *broadcast) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
