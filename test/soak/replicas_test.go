//go:build soak

package soak

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// Lifetimes that are short enough for a serving certificate to be renewed in
// every phase, and for the authority to be replaced in a run of some minutes.
const (
	authorityLife   = 5 * time.Minute
	certificateLife = 45 * time.Second
	// drain is longer than the balancer takes to notice that a server stops.
	drain = 2 * time.Second
)

// replicaSet is a set of servers behind a balancer. A server that stops is
// restarted, as a kubelet does.
type replicaSet struct {
	t          *testing.T
	site       *server.Site
	balancer   *balancer
	members    []*replica
	end        context.CancelFunc
	supervised sync.WaitGroup
}

// replica is one server, and those that replace it.
type replica struct {
	mu      sync.Mutex
	server  *server.Server
	backend *backend
	started int
	ends    []exit
}

// exit is how a server stopped.
type exit struct {
	code int
	log  string
}

func newReplicaSet(t *testing.T, plane *env.Env, size int) *replicaSet {
	t.Helper()
	site, err := server.Install(t.Context(), plane)
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	f := &replicaSet{t: t, site: site, balancer: newBalancer(t), end: end}
	t.Cleanup(f.stop)
	for range size {
		s := &replica{}
		f.members = append(f.members, s)
		require.NoError(t, f.boot(ctx, s))
		f.supervised.Go(func() { f.supervise(ctx, s) })
	}
	f.awaitReady()
	return f
}

func (f *replicaSet) boot(ctx context.Context, s *replica) error {
	started, err := f.site.Boot(ctx, server.Options{Unprobed: true, Args: []string{
		fmt.Sprintf("--service-port=%d", f.balancer.port()),
		"--drain-period=" + drain.String(),
		"--ca-validity=" + authorityLife.String(), "--cert-validity=" + certificateLife.String(),
	}})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server, s.backend, s.started = started, f.balancer.add(started.Webhook, started.Health), s.started+1
	return nil
}

// supervise restarts a server that has stopped, until ctx ends.
func (f *replicaSet) supervise(ctx context.Context, s *replica) {
	for {
		now, at := s.now()
		select {
		case <-ctx.Done():
			return
		case <-now.Done():
		}
		f.balancer.remove(at)
		s.mu.Lock()
		s.ends = append(s.ends, exit{now.Code(), now.Tail()})
		s.mu.Unlock()
		for ctx.Err() == nil && f.boot(ctx, s) != nil { // a kubelet retries forever
		}
	}
}

func (s *replica) now() (*server.Server, *backend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server, s.backend
}

func (s *replica) ended() []exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends
}

// signal sends a signal to the server of a replica.
func (f *replicaSet) signal(s *replica, sig syscall.Signal) {
	now, _ := s.now()
	require.NoError(f.t, now.Signal(sig))
}

// awaitSuccessor waits until the replica has another server than before, with
// connections.
func (f *replicaSet) awaitSuccessor(s *replica, before *server.Server) {
	f.t.Helper()
	soon(f.t, func() bool {
		now, at := s.now()
		return now != before && at.ready.Load()
	}, "the server is not restarted")
}

// awaitReady waits until all servers have connections.
func (f *replicaSet) awaitReady() {
	f.t.Helper()
	for i, s := range f.members {
		soon(f.t, func() bool {
			_, at := s.now()
			return at.ready.Load()
		}, fmt.Sprintf("server %d is not ready", i))
	}
}

// stop stops all servers, and fails the test if a log has a panic.
func (f *replicaSet) stop() {
	f.end()
	f.supervised.Wait()
	for _, s := range f.members {
		now, at := s.now()
		if now == nil {
			continue
		}
		f.balancer.remove(at)
		assert.NoError(f.t, now.Stop())
		for _, e := range append(s.ended(), exit{0, now.Tail()}) {
			assert.NotContains(f.t, e.log, "panic")
			if f.t.Failed() {
				f.t.Logf("a server exited with code %d:\n%s", e.code, e.log)
			}
		}
	}
}

// soon waits until a condition is met.
func soon(t *testing.T, condition func() bool, msg string) {
	t.Helper()
	require.Eventually(t, condition, 2*time.Minute, 50*time.Millisecond, msg)
}
