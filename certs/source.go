package certs

import (
	"crypto/tls"
	"errors"
	"net/http"
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

	// CABundle returns the CA certificates, in PEM, that verify every certificate
	// that any replica serves now or next; nil until known.
	CABundle() []byte

	// Changed returns a channel that is closed when CABundle next changes. Get
	// the channel before reading the bundle, so that no change is missed.
	Changed() <-chan struct{}

	// Healthy is a readiness check: nil while there is a certificate that has not expired.
	Healthy(*http.Request) error
}

// Publisher is a Source that serves a certificate of a new authority only after its
// bundle was published to the clients.
type Publisher interface {
	Source

	// Published reports that every client of the server now trusts bundle. Call it
	// whenever the bundle is observed, no matter who wrote it: it is idempotent and
	// does not block. A restarted process has to be informed again.
	Published(bundle []byte)
}

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
