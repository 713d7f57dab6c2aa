package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"
)

// Peers has the TLS configurations of calls between replicas. Each replica has a
// certificate that is valid as a server and as a client, of an authority in a Secret
// that only replicas can read, and accepts the certificates of that authority only.
// Create it with NewPeers and run Start.
type Peers struct {
	authority *Authority
	name      string
}

// NewPeers returns Peers that do nothing until Start, or all errors of opts, whose Names
// must be empty.
func NewPeers(opts Options) (*Peers, error) {
	name := peerName(opts.Namespace)
	opts.Names = []string{name}
	opts.usages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	authority, err := New(opts)
	if err != nil {
		return nil, err
	}
	return &Peers{authority: authority, name: name}, nil
}

// peerName is the DNS name in all certificates of replicas, which have no Service.
func peerName(namespace string) string { return "peers.overrule." + namespace + ".svc" }

// Start manages the certificates until ctx ends, and then returns nil. Call it once.
func (p *Peers) Start(ctx context.Context) error {
	var confirming sync.WaitGroup
	confirming.Go(func() { p.confirm(ctx) })
	defer confirming.Wait()
	return p.authority.Start(ctx)
}

// confirm reports each bundle as published until ctx ends. Replicas get it by reading the
// Secret: each has done so after the propagation delay, or cannot read it at all.
func (p *Peers) confirm(ctx context.Context) {
	for {
		changed := p.authority.Changed()
		p.authority.Published(p.authority.CABundle())
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica has a
// certificate.
func (p *Peers) NeedLeaderElection() bool { return false }

// Healthy is a readiness check: nil while there is a certificate that has not expired.
func (p *Peers) Healthy(r *http.Request) error { return p.authority.Healthy(r) }

// ServerTLS returns the configuration of the server for other replicas, for HTTP/2 only.
// It requires a client certificate. Each handshake uses the certificate and the CA bundle
// of that time.
func (p *Peers) ServerTLS() *tls.Config {
	config := p.baseTLS()
	config.GetCertificate = p.authority.GetCertificate
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.ClientCAs = x509.NewCertPool() // accepts none; see below
	config.SessionTicketsDisabled = true  // a resumed session would not be verified again
	handshake := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := handshake.Clone()
		now.ClientCAs = p.trusted()
		return now, nil
	}
	return config
}

// ClientTLS returns the configuration of the client of other replicas, for HTTP/2 only.
// Each handshake uses the certificate and the CA bundle of that time.
func (p *Peers) ClientTLS() *tls.Config {
	config := p.baseTLS()
	config.ServerName = p.name // replicas call each other by address
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.authority.GetCertificate(nil) }
	config.InsecureSkipVerify = true // RootCAs cannot change, so verifyServer verifies
	config.VerifyConnection = p.verifyServer
	return config
}

func (p *Peers) baseTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, Time: p.authority.opts.Clock.Now}
}

// verifyServer verifies the certificate of a server as crypto/tls does, with the CA
// bundle of this time.
func (p *Peers) verifyServer(c tls.ConnectionState) error {
	opts := x509.VerifyOptions{
		Roots: p.trusted(), DNSName: p.name, CurrentTime: p.authority.opts.Clock.Now(),
		Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, cert := range c.PeerCertificates[1:] {
		opts.Intermediates.AddCert(cert)
	}
	_, err := c.PeerCertificates[0].Verify(opts)
	return err
}

// trusted returns the authorities of the present bundle; before there is one, none.
func (p *Peers) trusted() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.authority.CABundle())
	return pool
}
