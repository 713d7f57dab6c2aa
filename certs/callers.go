package certs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// CallersOptions is what Callers needs to know. File is required.
type CallersOptions struct {
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
var ErrNoAuthorities = errors.New("no authorities of callers yet")

// Callers demands certificates of those who call a server. It trusts the last
// authorities that were good, for as long as the file holds anything else.
type Callers struct {
	opts    CallersOptions
	folder  folder
	trusted atomic.Pointer[callerTrust] // nil until the first that is good
	fault   atomic.Pointer[error]       // of the file as it is now
}

type callerTrust struct {
	bundle   []byte
	pool     *x509.CertPool
	firstEnd time.Time // of the authority that expires first
}

// NewCallers returns Callers that read nothing until Start, or why opts cannot
// be used.
func NewCallers(opts CallersOptions) (*Callers, error) {
	poll := cmp.Or(opts.PollInterval, DefaultFilePoll)
	switch {
	case opts.File == "":
		return nil, errors.New("callers: no file of authorities given")
	case slices.Contains(opts.Subjects, ""):
		return nil, fmt.Errorf("callers: subjects %q: none may be empty", opts.Subjects)
	case poll < 0:
		return nil, errors.New("callers: poll interval must not be negative")
	}
	return &Callers{opts: opts, folder: folder{path: filepath.Dir(opts.File), poll: poll, log: opts.Log}}, nil
}

// Start follows the file until ctx ends, and then returns nil. Call it once.
func (c *Callers) Start(ctx context.Context) error {
	c.folder.follow(ctx, c.look)
	return nil
}

// NeedLeaderElection tells controller-runtime to run Callers on every replica.
func (c *Callers) NeedLeaderElection() bool { return false }

func (c *Callers) look() {
	certs, err := c.read()
	before := c.fault.Swap(&err)
	if err != nil {
		if before == nil || *before == nil || (*before).Error() != err.Error() {
			c.opts.Log.Error(err, "the authorities of callers cannot be read")
		}
		return
	}
	bundle := encodeChain(certs)
	if was := c.trusted.Load(); was != nil && bytes.Equal(was.bundle, bundle) {
		return
	}
	trusted := &callerTrust{bundle: bundle, pool: x509.NewCertPool(), firstEnd: certs[0].NotAfter}
	for _, cert := range certs {
		trusted.pool.AddCert(cert)
		trusted.firstEnd = earlier(trusted.firstEnd, cert.NotAfter)
	}
	c.trusted.Store(trusted)
	c.opts.Log.Info("callers need a certificate", "file", c.opts.File, "authorities", len(certs), "subjects", c.opts.Subjects)
}

func (c *Callers) read() ([]*x509.Certificate, error) {
	name := filepath.Base(c.opts.File)
	files, err := c.folder.read(name)
	if err != nil {
		return nil, err
	}
	certs, err := certificatesIn(files, name)
	if fault, ok := errors.AsType[*FileError](err); ok {
		fault.Path = c.opts.File
	}
	return certs, err
}

// Require returns base with the demand for a certificate: each handshake is held
// to the authorities of its moment. No session is resumed, for that would skip
// them.
func (c *Callers) Require(base *tls.Config) *tls.Config {
	demanding := base.Clone()
	demanding.ClientAuth = tls.RequireAndVerifyClientCert
	demanding.SessionTicketsDisabled = true
	demanding.VerifyConnection = c.verify
	demanding.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		trusted := c.trusted.Load()
		if trusted == nil {
			return nil, c.because(ErrNoAuthorities)
		}
		now := demanding.Clone()
		now.GetConfigForClient = nil
		now.ClientCAs = trusted.pool
		return now, nil
	}
	return demanding
}

// verify holds a certificate that was verified to the subjects.
func (c *Callers) verify(state tls.ConnectionState) error {
	if len(c.opts.Subjects) == 0 {
		return nil
	}
	cert := state.PeerCertificates[0]
	names := namesOf(cert)
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.opts.Subjects, name) }) {
		return nil
	}
	return fmt.Errorf("client certificate of %s: %w: it has to name one of %s", strings.Join(names, ", "), ErrNotAccepted, strings.Join(c.opts.Subjects, ", "))
}

// namesOf are the common name and the alternative names of a certificate.
func namesOf(cert *x509.Certificate) []string {
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
func (c *Callers) Healthy(*http.Request) error {
	if c.trusted.Load() == nil {
		return c.because(ErrNoAuthorities)
	}
	return nil
}

// Problem returns what is wrong with the file though callers can be verified.
func (c *Callers) Problem() error {
	if fault := c.fault.Load(); fault != nil && *fault != nil && c.trusted.Load() != nil {
		return fmt.Errorf("%w; trusting the authorities before them", *fault)
	}
	return nil
}

func (c *Callers) because(err error) error {
	if fault := c.fault.Load(); fault != nil && *fault != nil {
		return fmt.Errorf("%w: %w", err, *fault)
	}
	return err
}
