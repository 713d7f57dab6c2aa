package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/webhookconfig"
	"overrule.dev/overrule/webhook"
)

// httpsServer serves the webhooks. At shutdown it continues to respond for the
// drain period, and its runnables (watches, certificates) end last: a rolling
// restart loses no call.
type httpsServer struct {
	address      string
	connections  int // limit of open connections; more wait to be accepted
	drainPeriod  time.Duration
	webhooks     *webhook.Server
	certificates certs.Source
	clientAuth   *certs.ClientAuth  // nil: clients need no certificate
	runnables    []manager.Runnable // run for as long as the server responds
	log          logr.Logger
	// handOver, if set, ends the part of this replica as a leader when it drains.
	handOver func(context.Context)
	draining atomic.Bool
	serving  *sync.WaitGroup // if set, held until the last call is answered
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// serves.
func (s *httpsServer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *httpsServer) Start(ctx context.Context) error {
	if s.serving != nil {
		s.serving.Add(1)
		defer s.serving.Done()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen for admission reviews: %w", err)
	}
	listener = netutil.LimitListener(listener, s.connections)
	runnablesCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, groupCtx := errgroup.WithContext(runnablesCtx)
	for _, r := range s.runnables {
		group.Go(func() error { return r.Start(groupCtx) })
	}
	conns := newConnTracker(s.connections)
	server := s.server(conns)
	group.Go(func() error {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve admission reviews: %w", err)
		}
		return nil
	})
	s.log.Info("serving", "address", listener.Addr().String())
	select {
	case <-ctx.Done():
		s.shutdown(context.WithoutCancel(ctx), server, conns)
	case <-groupCtx.Done():
		_ = server.Close() // the group returns the reason
	}
	stop()
	return group.Wait()
}

// Timeouts and limits of connections.
const (
	// An API server closes a connection that was idle for 90 seconds. If this
	// server closes one first, it loses the request that arrives meanwhile. That
	// includes the wait for the first request: an API server dials connections that
	// it uses later or never. net/http counts that wait as reading the header, so
	// the header has the same timeout.
	idleTimeout  = 2 * time.Minute
	readTimeout  = 15 * time.Second                       // of the TLS handshake, and of bodies that no handler reads
	writeTimeout = webhookconfig.MaxTimeout + readTimeout // of reading a review, and answering it in time
	headerBytes  = 16 << 10
	// maxConnections bounds goroutines and buffers. An API server has one
	// connection for each call in flight, and some idle ones.
	maxConnections = 2048
)

func (s *httpsServer) server(conns *connTracker) *http.Server {
	server := &http.Server{
		Handler:           s.handler(),
		TLSConfig:         s.tls(),
		Protocols:         new(http.Protocols),
		ConnState:         conns.track,
		ReadHeaderTimeout: idleTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          errorLog(s.log),
		// Otherwise net/http responds to OPTIONS * itself, unlike to any other path.
		DisableGeneralOptionsHandler: true,
	}
	server.Protocols.SetHTTP1(true) // what an API server uses for Services
	return server
}

// handler verifies the client certificate of each request again: a connection
// may outlive the authorities that it was accepted with.
func (s *httpsServer) handler() http.Handler {
	hooks := s.webhooks.Handler()
	if s.clientAuth == nil {
		return hooks
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.clientAuth.Verify(*r.TLS); err != nil {
			s.log.Info("client certificate is no longer valid", "from", r.RemoteAddr, "reason", err.Error())
			s.webhooks.RejectConnection(w)
			return
		}
		hooks.ServeHTTP(w, r)
	})
}

func (s *httpsServer) tls() *tls.Config {
	c := certs.TLSConfig(s.certificates)
	if s.clientAuth == nil {
		return c
	}
	return s.clientAuth.Require(c)
}
