package certs

import (
	"bytes"
	"sync"
)

// publisher has the current value of something, and notifies of changes. Its methods are
// safe for concurrent use. Create it with newPublisher.
type publisher struct {
	mu      sync.Mutex
	value   []byte
	changed chan struct{} // closed, and replaced, when value changes
}

func newPublisher() *publisher { return &publisher{changed: make(chan struct{})} }

// Value returns the current value.
func (p *publisher) Value() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.value)
}

// Changed returns a channel that is closed when the value next changes.
func (p *publisher) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// publish sets the value, and notifies if it changed.
func (p *publisher) publish(value []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Equal(p.value, value) {
		return
	}
	p.value = value
	close(p.changed)
	p.changed = make(chan struct{})
}

// bundlePublisher is a publisher of a CA bundle: it implements CABundle and Changed of a
// Source.
type bundlePublisher struct{ *publisher }

func newBundlePublisher() *bundlePublisher { return &bundlePublisher{newPublisher()} }

// CABundle implements Source.
func (p *bundlePublisher) CABundle() []byte { return p.Value() }
