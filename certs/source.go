package certs

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net/http"
	"sync"
	"time"
)

// ErrNotReady is in the error of a Source that has no certificate to serve yet.
var ErrNotReady = errors.New("no serving certificate yet")

// Source provides the certificate of a server and the CA bundle of its clients. All
// methods are safe for concurrent use.
type Source interface {
	// GetCertificate returns the current certificate, for any server name: an API
	// server sends no name to an IP address. Before there is one, the error is
	// ErrNotReady.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)

	// CABundle returns the CA certificates, in PEM, that verify the certificates of
	// all replicas; nil until known.
	CABundle() []byte

	// Changed returns a channel that is closed when CABundle next changes. Get
	// the channel before reading the bundle, so that no change is missed.
	Changed() <-chan struct{}

	// Published reports that every client of the server now trusts bundle. Call it
	// whenever the bundle is observed, no matter who wrote it: it is idempotent and
	// does not block. A restarted process has to be informed again.
	Published(bundle []byte)

	// Healthy is a readiness check: nil while there is a certificate that has not expired.
	Healthy(*http.Request) error

	// Expiries returns when the certificates in use expire, by name.
	Expiries() map[string]time.Time
}

// Names of certificates, as the metrics have them.
const (
	NameServing   = "serving"
	NameAuthority = "authority"
	NameCallers   = "callers"
	NamePeer      = "peer"
)

// TLSConfig returns a server configuration that gets the certificate of each
// handshake from src, for HTTP/1.1 over TLS 1.3 only.
func TLSConfig(src Source) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: src.GetCertificate,
		NextProtos:     []string{"http/1.1"},
	}
}

// ServiceNames returns the DNS names of a Service inside the cluster, followed by
// extra. The first one is the name that API servers use.
func ServiceNames(service, namespace string, extra ...string) []string {
	qualified := service + "." + namespace
	return append([]string{qualified + ".svc", qualified, qualified + ".svc.cluster.local"}, extra...)
}

// publisher has the current value of something, and notifies of changes. Its methods are
// safe for concurrent use. Create it with newPublisher.
type publisher struct {
	mu      sync.Mutex
	latest  []byte
	changed chan struct{} // closed, and replaced, when latest changes
}

func newPublisher() *publisher { return &publisher{changed: make(chan struct{})} }

func (p *publisher) get() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.latest)
}

// Changed returns a channel that is closed when the value next changes.
func (p *publisher) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// publish sets the value, and notifies if it changed.
func (p *publisher) publish(value []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Equal(p.latest, value) {
		return
	}
	p.latest = value
	close(p.changed)
	p.changed = make(chan struct{})
}
