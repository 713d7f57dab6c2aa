package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// ErrNotAccepted is in the error of a client whose certificate is valid and has none of
// the subjects.
var ErrNotAccepted = errors.New("not accepted")

// ErrNoAuthorities is in the error of a ClientAuth before its CAs are loaded.
var ErrNoAuthorities = errors.New("client CAs not loaded yet")

// ClientAuth requires client certificates of the clients of a server. While its file
// is invalid it trusts the last valid CAs.
type ClientAuth struct {
	held[clientTrust]
	file     string
	subjects []string
}

// clientTrust are the CAs of clients. It is immutable.
type clientTrust struct {
	pool        *x509.CertPool
	firstExpiry time.Time // of the CA that expires first
}

// NewClientAuth returns a ClientAuth that reads nothing until Start. file has the CAs, in
// PEM, that sign client certificates. subjects are the common names and alternative names
// of which a client must have one; if empty, every client of the CAs is accepted.
func NewClientAuth(file string, subjects []string, log logr.Logger) *ClientAuth {
	return &ClientAuth{newHeld[clientTrust](log, "client CAs", ErrNoAuthorities), file, subjects}
}

// Start reads the file regularly until ctx ends, and then returns nil. Call it once.
func (c *ClientAuth) Start(ctx context.Context) error {
	return c.run(ctx, clock.RealClock{}, func(context.Context) (time.Duration, error) { return filePoll, c.reload() })
}

func (c *ClientAuth) reload() error {
	certs, err := readCertificates(c.file)
	if err != nil {
		return fmt.Errorf("client CAs: %w: provide certificates in PEM format", err)
	}
	trusted := &clientTrust{poolOf(certs), certs[0].NotAfter}
	for _, cert := range certs {
		trusted.firstExpiry = earlier(trusted.firstExpiry, cert.NotAfter)
	}
	if previous := c.value.Swap(trusted); previous == nil || !previous.pool.Equal(trusted.pool) {
		c.log.Info("client CAs loaded", "file", c.file, "authorities", len(certs), "subjects", c.subjects)
	}
	return nil
}

// Require returns base with client certificates required.
func (c *ClientAuth) Require(base *tls.Config) *tls.Config {
	required := base.Clone()
	required.ClientAuth = tls.RequireAnyClientCert // Verify verifies it, with the CAs of the moment
	required.VerifyConnection = c.Verify
	return required
}

// Verify returns an error unless the certificate of a client is valid now: a connection
// can outlive the certificate and the CAs that verified the handshake.
func (c *ClientAuth) Verify(state tls.ConnectionState) error {
	trusted := c.value.Load()
	if trusted == nil {
		return c.withCause(ErrNoAuthorities)
	}
	if _, err := verifyChain(state.PeerCertificates, trusted.pool, "", x509.ExtKeyUsageClientAuth, time.Now()); err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	names := certificateNames(state.PeerCertificates[0])
	if len(c.subjects) > 0 && !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.subjects, name) }) {
		return fmt.Errorf("client certificate of %s: %w: must have one of the names %s", strings.Join(names, ", "), ErrNotAccepted, strings.Join(c.subjects, ", "))
	}
	return nil
}

// certificateNames returns the common name and the alternative names of a
// certificate.
func certificateNames(cert *x509.Certificate) []string {
	names := slices.Concat([]string{cert.Subject.CommonName}, cert.DNSNames, cert.EmailAddresses)
	for _, uri := range cert.URIs {
		names = append(names, uri.String())
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// Expiries returns the first expiry of the client CAs; nil before there are any.
// Which of them clients need is not known.
func (c *ClientAuth) Expiries() map[string]time.Time {
	trusted := c.value.Load()
	if trusted == nil {
		return nil
	}
	return map[string]time.Time{NameCallers: trusted.firstExpiry}
}
