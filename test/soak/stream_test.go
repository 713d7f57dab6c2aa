//go:build soak

package soak

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
)

const (
	// writeInterval is the minimum time between two writes of a writer.
	writeInterval = 150 * time.Millisecond
	// retryPause is the pause before a writer repeats a write that did not reach
	// the API server.
	retryPause = 100 * time.Millisecond
)

// stream is a set of writers that write at a constant rate.
type stream struct {
	counters *counters
	end      func()
}

// start starts a writer of each kind, with its own tenant and connections.
func start(t *testing.T, tenants []tenant, connect func() dynamic.Interface, into *counters) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	s := &stream{counters: into, end: func() {
		cancel()
		writers.Wait()
	}}
	t.Cleanup(s.end)
	for i, w := range tenants {
		c := connect()
		writers.Go(func() { s.run(ctx, c, writerKinds[i](w)) })
	}
	return s
}

// run sends one write after another. A write that must be stored and was not is
// repeated, and counted again: the next one depends on it.
func (s *stream) run(ctx context.Context, c dynamic.Interface, writes []write) {
	beat := time.NewTicker(writeInterval)
	defer beat.Stop()
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		w := writes[i%len(writes)]
		if got := s.send(ctx, c, w); w.want != "" || got == stored {
			i++
		}
	}
}

// send repeats a write until the API server or a webhook has answered it. It is
// not canceled when the stream ends: every write is counted.
func (s *stream) send(ctx context.Context, c dynamic.Interface, w write) outcome {
	for {
		sent := s.counters.now()
		got, text := outcomeOf(w.send(context.WithoutCancel(ctx), c))
		p := sent
		if got != cut {
			p = s.counters.now()
		}
		s.counters.record(p, string(w.want), got, text, w.what)
		if got != cut || ctx.Err() != nil {
			return got
		}
		time.Sleep(retryPause)
	}
}
