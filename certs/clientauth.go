package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// ClientAuthOptions configures a ClientAuth. File is required.
type ClientAuthOptions struct {
	// File has the CAs, in PEM, that sign client certificates.
	File string
	// Subjects are the common names and alternative names of which a client must
	// have one. If empty, every client of the CAs is accepted.
	Subjects []string
	// PollInterval is how often the file is read without a file system event
	// (default DefaultFilePoll).
	PollInterval time.Duration
	// Log gets one line for each new content of the file and for each new error.
	Log logr.Logger
}

// ErrNotAccepted is in the error of a handshake with a client whose certificate is
// valid and has none of the Subjects.
var ErrNotAccepted = errors.New("not accepted")

// ErrNoAuthorities is in the error of a ClientAuth before its CAs are loaded.
var ErrNoAuthorities = errors.New("client CAs not loaded yet")

// ClientAuth requires client certificates of the clients of a server. While its file
// is invalid it trusts the last valid CAs.
type ClientAuth struct {
	*reloadedFile[clientTrust]

	subjects []string
}

type clientTrust struct {
	bundle      []byte
	authorities int
	pool        *x509.CertPool
	firstExpiry time.Time // of the CA that expires first
}

// NewClientAuth returns a ClientAuth that reads nothing until Start, or the error of
// opts.
func NewClientAuth(opts ClientAuthOptions) (*ClientAuth, error) {
	if slices.Contains(opts.Subjects, "") {
		return nil, fmt.Errorf("client CAs: subjects %q: must not be empty", opts.Subjects)
	}
	file, err := newReloadedFile(reloadedFileOptions[clientTrust]{
		subject: "client CAs", file: opts.File, poll: opts.PollInterval,
		read:  readClientTrust,
		equal: func(a, b *clientTrust) bool { return bytes.Equal(a.bundle, b.bundle) },
		logLoaded: func(loaded *clientTrust) {
			opts.Log.Info("client CAs loaded", "file", opts.File, "authorities", loaded.authorities, "subjects", opts.Subjects)
		},
		errorMessage: "cannot load client CAs", log: opts.Log,
	})
	if err != nil {
		return nil, err
	}
	return &ClientAuth{file, opts.Subjects}, nil
}

func readClientTrust(files map[string][]byte, name string) (*clientTrust, error) {
	certs, err := certificatesIn(files, name)
	if err != nil {
		return nil, err
	}
	trusted := &clientTrust{bundle: encodeChain(certs), authorities: len(certs), pool: x509.NewCertPool(), firstExpiry: certs[0].NotAfter}
	for _, cert := range certs {
		trusted.pool.AddCert(cert)
		trusted.firstExpiry = earlier(trusted.firstExpiry, cert.NotAfter)
	}
	return trusted, nil
}

// Require returns base with client certificates required. Each handshake is verified
// with the current CAs. Sessions are not resumed, which would skip that.
func (c *ClientAuth) Require(base *tls.Config) *tls.Config {
	required := base.Clone()
	required.ClientAuth = tls.RequireAndVerifyClientCert
	required.SessionTicketsDisabled = true
	required.VerifyConnection = c.verifySubject
	required.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		trusted := c.current.Load()
		if trusted == nil {
			return nil, c.lastErr.wrap(ErrNoAuthorities)
		}
		now := required.Clone()
		now.GetConfigForClient = nil
		now.ClientCAs = trusted.pool
		return now, nil
	}
	return required
}

// verifySubject checks the names of a verified certificate.
func (c *ClientAuth) verifySubject(state tls.ConnectionState) error {
	if len(c.subjects) == 0 {
		return nil
	}
	cert := state.PeerCertificates[0]
	names := certificateNames(cert)
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.subjects, name) }) {
		return nil
	}
	return fmt.Errorf("client certificate of %s: %w: must have one of the names %s", strings.Join(names, ", "), ErrNotAccepted, strings.Join(c.subjects, ", "))
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

// Healthy is a readiness check: nil once the CAs are loaded.
func (c *ClientAuth) Healthy(*http.Request) error { return c.healthy(ErrNoAuthorities) }

// Problem returns the error of the file while clients are verified with previous CAs.
func (c *ClientAuth) Problem() error { return c.problem("still trusting the previous CAs") }
