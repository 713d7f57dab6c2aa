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
type visit struct{ heldTo atomic.Pointer[callerTrust] }

type visitKey struct{}

// ConnContext is an http.Server's ConnContext. Without it, Standing verifies a
// certificate with each request.
func (c *Callers) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, visitKey{}, new(visit))
}

// CheckConnection returns why whoever sent a request may not call any more: a handshake
// holds a certificate to the authorities of its moment, and a connection can
// outlive them, and the certificate.
func (c *Callers) CheckConnection(r *http.Request) error {
	trusted := c.good.Load()
	if trusted == nil {
		return c.fault.because(ErrNoAuthorities)
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errors.New("client certificate: none was shown")
	}
	shown, now := r.TLS.PeerCertificates, time.Now()
	v, _ := r.Context().Value(visitKey{}).(*visit)
	if v != nil && v.heldTo.Load() == trusted && now.Before(shown[0].NotAfter) {
		return nil
	}
	between := x509.NewCertPool()
	for _, cert := range shown[1:] {
		between.AddCert(cert)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{
		Roots: trusted.pool, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil && v != nil {
		v.heldTo.Store(trusted)
	}
	return err
}
