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

// CallersOptions is what Callers needs to know. File is required.
type ClientAuthOptions struct {
	// File holds the authorities, in PEM, that sign the certificates of callers.
	File string
	// Subjects are the common names and alternative names of which a caller has
	// to have one; whoever the authorities signed may call if there are none.
	Subjects []string
	// PollInterval is how often the file is read even if no event of the file
	// system came (default DefaultFilePoll).
	PollInterval time.Duration
	// Log takes one line for each new content of the file, and for each new fault.
	Log logr.Logger
}

// ErrNotAccepted is in the error of a handshake with a client whose certificate
// is good and names nobody who may call.
var ErrNotAccepted = errors.New("not accepted")

// ErrNoAuthorities is in the error of Callers that have nobody to trust yet.
var ErrNoAuthorities = errors.New("client CAs not loaded yet")

// Callers demands certificates of those who call a server. It trusts the last
// authorities that were good, for as long as the file holds anything else.
type ClientAuth struct {
	*watchedFile[clientTrust]

	subjects []string
}

type clientTrust struct {
	bundle      []byte
	authorities int
	pool        *x509.CertPool
	firstExpiry time.Time // of the authority that expires first
}

// NewCallers returns Callers that read nothing until Start, or why opts cannot
// be used.
func NewClientAuth(opts ClientAuthOptions) (*ClientAuth, error) {
	if slices.Contains(opts.Subjects, "") {
		return nil, fmt.Errorf("client CAs: subjects %q: must not be empty", opts.Subjects)
	}
	file, err := newWatchedFile(watchedFileOptions[clientTrust]{
		subject: "client CAs", file: opts.File, poll: opts.PollInterval,
		read:  readClientTrust,
		equal: func(was, now *clientTrust) bool { return bytes.Equal(was.bundle, now.bundle) },
		logLoaded: func(now *clientTrust) {
			opts.Log.Info("client CAs loaded", "file", opts.File, "authorities", now.authorities, "subjects", opts.Subjects)
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

// Require returns base with the demand for a certificate: each handshake is held
// to the authorities of its moment. No session is resumed, for that would skip
// them.
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

// verify holds a certificate that was verified to the subjects.
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

// namesOf are the common name and the alternative names of a certificate.
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

// Healthy is a readiness check: nil once there are authorities to trust.
func (c *ClientAuth) Healthy(*http.Request) error { return c.healthy(ErrNoAuthorities) }

// Problem returns what is wrong with the file though callers can be verified.
func (c *ClientAuth) Problem() error { return c.problem("still trusting the previous CAs") }
