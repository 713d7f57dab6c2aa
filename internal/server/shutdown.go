package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Limits of shutdown: for clients to close idle connections, and for requests
// that are still in flight after the drain period.
const (
	closeTimeout    = time.Second
	shutdownTimeout = 10 * time.Second
)

// shutdown drains the server and then ends it.
func (s *httpsServer) shutdown(ctx context.Context, server *http.Server, conns *connTracker) {
	s.draining.Store(true)
	s.webhooks.Drain()
	s.log.Info("draining", "period", s.drainPeriod.String())
	s.handOverAndDrain(ctx)
	conns.closeIdle(time.Now().Add(closeTimeout))
	// A connection that is closed before its client has read the response is
	// reset if a request arrives, and the client may lose the response.
	_ = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, closeTimeout, true,
		func(context.Context) (bool, error) { return conns.idleCount() == 0, nil })
	ending, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		s.log.Error(err, "shutdown interrupted requests in flight")
		return
	}
	s.log.Info("drained")
}

// handOverTimeout limits the handover to another replica.
const handOverTimeout = 8 * time.Second

// handOverAndDrain waits for the drain period, and until another replica leads if this one
// did.
func (s *httpsServer) handOverAndDrain(ctx context.Context) {
	drained := time.After(s.drainPeriod)
	if s.handOver != nil {
		ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
		defer cancel()
		s.handOver(ctx)
	}
	<-drained
}

// checkShutdown is a readiness check: it fails during shutdown.
func (s *httpsServer) checkShutdown(*http.Request) error {
	if s.draining.Load() {
		return errors.New("draining")
	}
	return nil
}
