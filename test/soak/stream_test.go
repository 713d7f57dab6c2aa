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
	// writeInterval is the least time from a write of a writer to its next.
	writeInterval = 150 * time.Millisecond
	// retryPause is the pause before a writer sends again what did not reach the API
	// server.
	retryPause = 100 * time.Millisecond
)

// stream is writers that write at a steady pace until it is ended.
type stream struct {
	counters *counters
	end      func()
}

// start starts a writer of each sort, with a world and connections of its own.
func start(t *testing.T, worlds []tenant, connect func() dynamic.Interface, into *counters) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	s := &stream{counters: into, end: func() {
		cancel()
		writers.Wait()
	}}
	t.Cleanup(s.end)
	for i, w := range worlds {
		c := connect()
		writers.Go(func() { s.run(ctx, c, writerKinds[i](w)) })
	}
	return s
}

// run writes one after another. What has to be stored and was not is written
// again, as a write of its own: the next one builds on it.
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

// send sends a write until the API server has an answer of its own or of a
// webhook's. Not cut off by the end of the stream: what was sent is counted.
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
