//go:build soak

package soak

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// pollEvery is the pause between two looks at a backend's readiness, and
	// pollLimit the time that an answer may take.
	pollEvery = 200 * time.Millisecond
	pollLimit = time.Second
	// endpointLag is what endpoints take to reach the proxies of all nodes.
	endpointLag = 300 * time.Millisecond
)

// balancer does what a Service does, over TCP: a new connection goes to each of
// the backends in turn whose readiness was seen a lag ago. A connection that
// stands stays where it is, whatever becomes of its backend's readiness.
type balancer struct {
	listener net.Listener
	next     atomic.Uint64

	// frozen keeps the backends as they are: no endpoint changes while there is no
	// API server to write it.
	frozen atomic.Bool

	mu       sync.Mutex
	backends []*backend
}

// backend is one server, as a Service's endpoints have it.
type backend struct {
	address, health string
	ready           atomic.Bool  // as the proxies know it
	routed          atomic.Int64 // connections that were sent there
	open            atomic.Int64 // those of them that stand
	stop            context.CancelFunc
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	b := &balancer{listener: listener}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(client)
		}
	}()
	return b
}

func (b *balancer) port() int { return b.listener.Addr().(*net.TCPAddr).Port }

// add takes a server in; it gets no connection before it is seen to be ready.
func (b *balancer) add(address, health string) *backend {
	ctx, stop := context.WithCancel(context.Background())
	e := &backend{address: address, health: health, stop: stop}
	b.mu.Lock()
	b.backends = append(b.backends, e)
	b.mu.Unlock()
	go e.poll(ctx, &b.frozen)
	return e
}

// remove forgets a server that is gone.
func (b *balancer) remove(e *backend) {
	e.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(b.backends, func(other *backend) bool { return other == e })
}

// poll keeps what the proxies know in step with what the server says.
func (e *backend) poll(ctx context.Context, frozen *atomic.Bool) {
	client := &http.Client{Timeout: pollLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	said := false
	for ctx.Err() == nil {
		now := isReady(ctx, client, e.health)
		if now != said && !frozen.Load() {
			said = now
			time.AfterFunc(endpointLag, func() { e.ready.Store(now) })
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

func isReady(ctx context.Context, client *http.Client, health string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(r)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// pick returns the next backend, or nil if there is none.
func (b *balancer) pick() *backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ready []*backend
	for _, e := range b.backends {
		if e.ready.Load() {
			ready = append(ready, e)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[b.next.Add(1)%uint64(len(ready))]
}

func (b *balancer) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	e := b.pick()
	if e == nil {
		return
	}
	e.routed.Add(1)
	server, err := new(net.Dialer).Dial("tcp", e.address)
	if err != nil {
		return
	}
	e.open.Add(1)
	defer e.open.Add(-1)
	go func() {
		defer func() { _ = client.Close() }()
		_, _ = io.Copy(client, server)
	}()
	defer func() { _ = server.Close() }()
	_, _ = io.Copy(server, client)
}
