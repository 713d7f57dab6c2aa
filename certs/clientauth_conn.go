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

// visit is what is remembered of a connection: the authorities to which its
// certificate was held last.
type connState struct{ verifiedWith atomic.Pointer[clientTrust] }

type connStateKey struct{}

// ConnContext is an http.Server's ConnContext. Without it, Standing verifies a
// certificate with each request.
func (c *ClientAuth) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connStateKey{}, new(connState))
}

// CheckConnection returns why whoever sent a request may not call any more: a handshake
// holds a certificate to the authorities of its moment, and a connection can
// outlive them, and the certificate.
func (c *ClientAuth) CheckConnection(r *http.Request) error {
	trusted := c.current.Load()
	if trusted == nil {
		return c.lastErr.wrap(ErrNoAuthorities)
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errors.New("client certificate required")
	}
	shown, now := r.TLS.PeerCertificates, time.Now()
	v, _ := r.Context().Value(connStateKey{}).(*connState)
	if v != nil && v.verifiedWith.Load() == trusted && now.Before(shown[0].NotAfter) {
		return nil
	}
	intermediates := x509.NewCertPool()
	for _, cert := range shown[1:] {
		intermediates.AddCert(cert)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{
		Roots: trusted.pool, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil && v != nil {
		v.verifiedWith.Store(trusted)
	}
	return err
}
