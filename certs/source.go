package certs

import (
	"crypto/tls"
	"errors"
	"net/http"
)

// ErrNotReady is in the error of a Source that has no certificate to serve yet.
var ErrNotReady = errors.New("no serving certificate yet")

// Source gives a server its certificate and its clients their trust. All
// methods are safe for concurrent use.
type Source interface {
	// GetCertificate returns the certificate to serve now, whatever name the
	// client asked for: an API server sends none to a plain address. Before
	// there is one, the error is ErrNotReady.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)

	// CABundle returns the certificates, in PEM, that clients must trust for
	// every certificate that any replica may serve now or next; nil until known.
	CABundle() []byte

	// Changed returns a channel that is closed when CABundle next changes. To
	// miss nothing, take the channel before reading the bundle.
	Changed() <-chan struct{}

	// Healthy is a readiness check: nil while an unexpired certificate is served.
	Healthy(*http.Request) error
}

// Publisher is a Source that waits for its bundle to reach the clients before
// it serves what only the new bundle verifies.
type Publisher interface {
	Source

	// Published tells that every client of the server now trusts bundle. Call
	// it whenever the bundle is seen in place, whoever wrote it: it is
	// idempotent, does not block, and a restarted process has forgotten it.
	Published(bundle []byte)
}

// TLSConfig returns a server configuration that serves what src gives at the
// moment of each handshake, for HTTP/1.1 over TLS 1.3 alone.
func TLSConfig(src Source) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: src.GetCertificate,
		NextProtos:     []string{"http/1.1"},
	}
}

// ServiceNames returns the names under which a Service is reached inside the
// cluster, the one that the API server uses first, and then extra.
func ServiceNames(service, namespace string, extra ...string) []string {
	qualified := service + "." + namespace
	return append([]string{qualified + ".svc", qualified, qualified + ".svc.cluster.local"}, extra...)
}
