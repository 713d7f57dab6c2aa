package ui

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Status is the version of the data and whether it is up to date.
type Status struct {
	// Version grows with each state that is loaded.
	Version uint64 `json:"version"`
	// Source says where the data is read from.
	Source string `json:"source"`
	// Error is why the current objects cannot be read; the page then shows the last
	// ones that could.
	Error string `json:"error,omitempty"`
	// Since is when reading them failed first.
	Since *time.Time `json:"since,omitempty"`
}

// model holds the last state that could be loaded.
type model struct {
	source Source
	now    func() time.Time

	mu      sync.Mutex
	state   *indexed
	status  Status
	changed chan struct{} // closed with the next status
}

// newModel loads the first state.
func newModel(ctx context.Context, source Source) (*model, error) {
	state, err := source.Load(ctx)
	if err != nil {
		return nil, err
	}
	return &model{
		source: source, now: time.Now, state: newIndexed(state), changed: make(chan struct{}),
		status: Status{Version: 1, Source: source.Name()},
	}, nil
}

// current returns the last state and the status.
func (m *model) current() (*indexed, Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, m.status
}

// watch returns the status, and a channel that is closed with the next one.
func (m *model) watch() (Status, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status, m.changed
}

// follow loads a state whenever the source has changed, until ctx ends.
func (m *model) follow(ctx context.Context) {
	for {
		if err := m.source.Wait(ctx); err != nil {
			if ctx.Err() == nil {
				m.set(nil, err)
			}
			return
		}
		state, err := m.source.Load(ctx)
		if ctx.Err() != nil {
			return
		}
		m.set(state, err)
	}
}

// ErrUnchanged is the error of Source.Load if the objects are those of the last state.
var ErrUnchanged = errors.New("unchanged")

// set publishes a state, or why it could not be loaded.
func (m *model) set(state State, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := Status{Version: m.status.Version, Source: m.status.Source}
	switch {
	case errors.Is(err, ErrUnchanged) && m.status.Error == "":
		return
	case errors.Is(err, ErrUnchanged):
	case err != nil:
		next.Error, next.Since = err.Error(), m.status.Since
		if next.Since == nil {
			now := m.now()
			next.Since = &now
		}
		if next.Error == m.status.Error {
			return
		}
	default:
		m.state = newIndexed(state)
		next.Version++
	}
	m.status = next
	close(m.changed)
	m.changed = make(chan struct{})
}
