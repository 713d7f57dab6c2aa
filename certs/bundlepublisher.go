package certs

import (
	"bytes"
	"sync"
)

// bundlePublisher has the current bundle, and notifies of changes. Its methods are
// safe for concurrent use. Create it with newBundlePublisher.
type bundlePublisher struct {
	mu      sync.Mutex
	bundle  []byte
	changed chan struct{} // closed, and replaced, when bundle changes
}

func newBundlePublisher() *bundlePublisher { return &bundlePublisher{changed: make(chan struct{})} }

// CABundle implements Source.
func (p *bundlePublisher) CABundle() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.bundle)
}

// Changed implements Source.
func (p *bundlePublisher) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// publish sets the bundle, and notifies if it changed.
func (p *bundlePublisher) publish(bundle []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Equal(p.bundle, bundle) {
		return
	}
	p.bundle = bundle
	close(p.changed)
	p.changed = make(chan struct{})
}
