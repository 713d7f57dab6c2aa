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
	// pollEvery is the polling interval of a backend's readiness, pollLimit the
	// timeout of a poll.
	pollEvery = 200 * time.Millisecond
	pollLimit = time.Second
	// endpointLag is the time until an endpoint change reaches the proxies of all
	// nodes.
	endpointLag = 300 * time.Millisecond
)

// balancer forwards TCP connections as a Service does: a new connection goes in
// turn to each backend that was ready endpointLag ago. An open connection stays
// with its backend, whatever its readiness.
type balancer struct {
	listener net.Listener
	next     atomic.Uint64

	// frozen keeps the backends: endpoints do not change while the API server is
	// down.
	frozen atomic.Bool

	mu       sync.Mutex
	backends []*backend
}

// backend is one server, as an endpoint of a Service.
type backend struct {
	address, health string
	ready           atomic.Bool  // as the proxies know it
	routed          atomic.Int64 // connections that were sent there
	open            atomic.Int64 // those that are open
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

// add adds a server; it gets no connection before it is ready.
func (b *balancer) add(address, health string) *backend {
	ctx, stop := context.WithCancel(context.Background())
	e := &backend{address: address, health: health, stop: stop}
	b.mu.Lock()
	b.backends = append(b.backends, e)
	b.mu.Unlock()
	go e.poll(ctx, &b.frozen)
	return e
}

// remove removes a server that has stopped.
func (b *balancer) remove(e *backend) {
	e.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(b.backends, func(other *backend) bool { return other == e })
}

// poll updates the proxies' view of a server's readiness.
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

// pick returns the next ready backend, or nil.
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
