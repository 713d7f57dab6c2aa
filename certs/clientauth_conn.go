package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// connState has the CAs that last verified the certificate of a connection.
type connState struct{ verifiedWith atomic.Pointer[clientTrust] }

type connStateKey struct{}

// ConnContext is the ConnContext of an http.Server. Without it, CheckConnection
// verifies the certificate of each request.
func (c *ClientAuth) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connStateKey{}, new(connState))
}

// CheckConnection returns an error if the client certificate of a request is not valid
// any more: its connection can outlive the certificate and the CAs that verified the
// handshake.
func (c *ClientAuth) CheckConnection(r *http.Request) error {
	trusted := c.current.Load()
	if trusted == nil {
		return c.lastErr.wrap(ErrNoAuthorities)
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errors.New("client certificate required")
	}
	shown, now := r.TLS.PeerCertificates, time.Now()
	state, _ := r.Context().Value(connStateKey{}).(*connState)
	if state != nil && state.verifiedWith.Load() == trusted && now.Before(shown[0].NotAfter) {
		return nil
	}
	intermediates := x509.NewCertPool()
	for _, cert := range shown[1:] {
		intermediates.AddCert(cert)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{
		Roots: trusted.pool, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil && state != nil {
		state.verifiedWith.Store(trusted)
	}
	return err
}
