package webhookconfig

import (
	"sync"

	"github.com/go-logr/logr"
)

// problem is what is wrong now, nil for nothing.
type problem struct {
	mu  sync.Mutex
	err error
}

func (p *problem) get() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// set replaces the problem, and logs each change.
func (p *problem) set(log logr.Logger, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && p.err != nil:
		log.Info("webhooks work again")
	case err != nil && (p.err == nil || p.err.Error() != err.Error()):
		log.Error(err, "problem with webhooks")
	}
	p.err = err
}
