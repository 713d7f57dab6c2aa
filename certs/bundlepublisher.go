package certs

import (
	"bytes"
	"sync"
)

// board shows a bundle, and tells when it changes. Its methods are safe for
// concurrent use. Make one with newBoard.
type bundlePublisher struct {
	mu      sync.Mutex
	bundle  []byte
	changed chan struct{} // closed, and replaced, when bundle changes
}

func newBundlePublisher() *bundlePublisher { return &bundlePublisher{changed: make(chan struct{})} }

// CABundle implements Source.
func (b *bundlePublisher) CABundle() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.bundle)
}

// Changed implements Source.
func (b *bundlePublisher) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// show tells the bundle from now on.
func (b *bundlePublisher) publish(bundle []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes.Equal(b.bundle, bundle) {
		return
	}
	b.bundle = bundle
	close(b.changed)
	b.changed = make(chan struct{})
}
