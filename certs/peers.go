package certs

import (
	"crypto/tls"
	"crypto/x509"
)

// peerName is the DNS name in all certificates for calls between replicas, which have no
// Service. It keeps them apart from the serving certificates of the same authority.
func peerName(namespace string) string { return "peers.overrule." + namespace + ".svc" }

// ServerTLS returns the configuration of the server for other replicas, for HTTP/2 only.
// It requires the certificate of a replica. Each handshake uses the certificate and the
// authorities of that time.
func (a *Authority) ServerTLS() *tls.Config {
	config := a.peerTLS(x509.ExtKeyUsageClientAuth)
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate(a.peer) }
	config.ClientAuth = tls.RequireAnyClientCert // VerifyConnection verifies it
	return config
}

// ClientTLS returns the configuration of the client of other replicas, for HTTP/2 only.
// Each handshake uses the certificate and the authorities of that time.
func (a *Authority) ClientTLS() *tls.Config {
	config := a.peerTLS(x509.ExtKeyUsageServerAuth)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.certificate(a.peer) }
	config.ServerName = a.peer.names[0] // replicas call each other by address
	config.InsecureSkipVerify = true    // VerifyConnection verifies the server
	return config
}

// peerTLS returns a configuration that verifies certificates of replicas of one use.
func (a *Authority) peerTLS(usage x509.ExtKeyUsage) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, Time: a.opts.Clock.Now,
		VerifyConnection: func(c tls.ConnectionState) error {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(a.CABundle())
			_, err := verifyChain(c.PeerCertificates, roots, a.peer.names[0], usage, a.opts.Clock.Now())
			return err
		},
	}
}
