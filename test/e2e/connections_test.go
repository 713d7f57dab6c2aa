//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

const (
	heldConnections = 10_000
	places          = 2048 // maxConnections of the server
)

// Some clients send nothing, some send half a ClientHello, and some complete the
// handshake and then send one byte per second: each kind has more connections
// than the server accepts by default. Meanwhile there are writes through the API
// server, and calls that each need a new connection, as an API server's first
// call does.
func TestHalfOpenConnectionsDoNotBlockCalls(t *testing.T) {
	env.Long(t)
	requireOpenFiles(t, heldConnections+1000)
	c := exclusive(t)
	g := c.prepare(t, "siege")
	succeed(t, g.apply(gatewayLimits))
	s := server.Start(t, c.Env, server.Options{})
	t.Cleanup(func() { requireNoPanic(t, s) })
	other := c.prepare(t, "siege-calls") // otherwise its policies would be effective instead
	succeed(t, other.apply(gatewayLimits))
	writes, calls := startWriters(t, g, 2), startCalls(t, s, other)
	time.Sleep(time.Second) // until they are all connected
	before := measureLoad(t, s)

	b := holdConnections(t, s.Webhook, heldConnections)
	most := watchLoad(t, s, b)
	b.closeAll()
	calls.end()
	writes.end()
	soon(t, func() bool {
		now := measureLoad(t, s)
		return now.files <= before.files+10 && now.goroutines <= before.goroutines+50
	}, "files or goroutines are leaked")

	t.Logf("before: %v; maximum: %v; after: %v", before, most, measureLoad(t, s))
	t.Logf("connections were kept open for at most %v", b.longest)
	t.Logf("%d writes, %d lost; %d calls on connections of their own, %d lost, the longest took %s",
		writes.writes.Load(), len(writes.failures()), calls.calls.Load(), len(calls.failures()), calls.longest)
	assert.Empty(t, b.failed, "every connection is accepted")
	assert.Empty(t, writes.failures(), "of %d writes", writes.writes.Load())
	assert.Greater(t, writes.writes.Load(), int64(50))
	assert.Empty(t, calls.failures(), "of %d calls", calls.calls.Load())
	assert.Greater(t, calls.calls.Load(), int64(50))
	assert.LessOrEqual(t, most.files, before.files+places+10, "as many as the limit, and no more")
	assert.Less(t, most.resident-before.resident, 256.0*(1<<20), "the paragraph of docs/operations.md on connections")
	denied(t, other.apply(limits("name: after", 100)), "ConstraintViolated: ")
}

// watchLoad samples a server while connections are held open, and returns the
// maximum. It ends once the server has closed every connection without a
// completed handshake; that needs no new connection.
func watchLoad(t *testing.T, s *server.Server, b *connHolder) load {
	t.Helper()
	var most load
	look := func() {
		now := measureLoad(t, s)
		most = load{max(most.resident, now.resident), max(most.heap, now.heap), max(most.stacks, now.stacks), max(most.goroutines, now.goroutines), max(most.files, now.files)}
	}
	for opened := false; !opened; {
		look()
		select {
		case <-b.opened:
			opened = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	soon(t, func() bool { look(); return b.openExcept(slow) == 0 }, "half-open connections exceed the handshake timeout of 15 seconds")
	return most
}

// load is the resource usage of a server.
type load struct{ resident, heap, stacks, goroutines, files float64 }

func (l load) String() string {
	return fmt.Sprintf("%.0f MiB (heap %.0f, stacks %.0f), %.0f goroutines, %.0f files", l.resident/(1<<20), l.heap/(1<<20), l.stacks/(1<<20), l.goroutines, l.files)
}

func measureLoad(t *testing.T, s *server.Server) load {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrape(t, s.Metrics)))
	require.NoError(t, err)
	gauge := func(name string) float64 {
		require.Contains(t, families, name)
		return families[name].GetMetric()[0].GetGauge().GetValue()
	}
	return load{gauge("process_resident_memory_bytes"), gauge("go_memstats_heap_inuse_bytes"), gauge("go_memstats_stack_inuse_bytes"), gauge("go_goroutines"), gauge("process_open_fds")}
}

// callers call a server in a loop, each time over a new connection.
type callers struct {
	calls   atomic.Int64
	end     func()
	longest time.Duration

	mu     sync.Mutex
	failed []string
}

func startCalls(t *testing.T, s *server.Server, g testNamespaces) *callers {
	t.Helper()
	c, where := &callers{}, g.c.path(t)
	var over atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !over.Load() {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // the longest allowed call
			status, answer, err := sendForged(ctx, s, where, g)
			cancel()
			c.done(time.Since(begun), status, answer, err)
		}
	})
	c.end = func() { over.Store(true); group.Wait() }
	t.Cleanup(c.end)
	return c
}

func (c *callers) done(took time.Duration, status int, answer string, err error) {
	c.calls.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, took)
	if err != nil || status != http.StatusOK || !strings.Contains(answer, "ConstraintViolated: ") {
		c.failed = append(c.failed, fmt.Sprintf("%d %s %v", status, answer, err))
	}
}

func (c *callers) failures() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}
