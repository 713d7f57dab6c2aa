package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Names of certificate files, as in a Secret of type kubernetes.io/tls.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
	CAFile   = "ca.crt"
)

// certPair is a serving certificate and its key, with the authorities that verify it.
type certPair struct {
	tls *tls.Certificate
	ca  []*x509.Certificate // none if there is no ca.crt
	// trustedUntil is the last expiry of roots; set by validate.
	trustedUntil time.Time
	// roots are the authorities of ca that verify the certificate; set by validate.
	roots []*x509.Certificate
}

// readCertPair parses the contents of files, by name. Its errors are *FileError whose
// path is a name only.
func readCertPair(files map[string][]byte) (*certPair, error) {
	chain, err := certificatesIn(files, CertFile)
	if err != nil {
		return nil, err
	}
	if _, ok := files[KeyFile]; !ok {
		return nil, &FileError{KeyFile, ErrMissing, "provide the key of " + CertFile}
	}
	if err := checkKey(files[KeyFile]); err != nil {
		return nil, err
	}
	served, err := tls.X509KeyPair(encodeChain(chain), files[KeyFile])
	if err != nil {
		return nil, &FileError{KeyFile, fmt.Errorf("%w: %w", ErrMismatch, err), "provide the key of " + CertFile}
	}
	p := &certPair{tls: &served}
	if _, ok := files[CAFile]; ok {
		p.ca, err = certificatesIn(files, CAFile)
	}
	return p, err
}

func encodeChain(chain []*x509.Certificate) []byte {
	ders := make([][]byte, len(chain))
	for i, cert := range chain {
		ders[i] = cert.Raw
	}
	return encodeCertificates(ders...)
}

// certificatesIn parses the certificates of a file, all of which must be valid PEM.
func certificatesIn(files map[string][]byte, name string) ([]*x509.Certificate, error) {
	const remedy = "provide certificates in PEM format"
	data, ok := files[name]
	if !ok {
		return nil, &FileError{name, ErrMissing, remedy}
	}
	var certs []*x509.Certificate
	block, rest := pem.Decode(data)
	for ; block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, pemKey) {
			return nil, &FileError{name, ErrSwapped, "store the certificate in " + CertFile + " and the key in " + KeyFile}
		}
		if block.Type != pemCertificate {
			return nil, &FileError{name, fmt.Errorf("block of type %q: %w", block.Type, ErrNotPEM), remedy}
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, &FileError{name, fmt.Errorf("read certificate %d: %w", len(certs)+1, err), remedy}
		}
		certs = append(certs, cert)
	}
	if err := checkComplete(rest, len(certs)); err != nil {
		return nil, &FileError{name, err, "provide the complete file"}
	}
	return certs, nil
}

// checkComplete returns an error unless a file with that many PEM blocks, followed by
// rest, is complete.
func checkComplete(rest []byte, blocks int) error {
	switch {
	case bytes.Contains(rest, []byte("-----BEGIN")):
		return ErrTruncated
	case blocks == 0:
		return ErrNotPEM
	}
	return nil
}

// checkKey returns the error of a key file by itself.
func checkKey(data []byte) error {
	block, rest := pem.Decode(data)
	switch {
	case block == nil && bytes.Contains(rest, []byte("-----BEGIN")):
		return &FileError{KeyFile, ErrTruncated, "provide the complete file"}
	case block == nil:
		return &FileError{KeyFile, fmt.Errorf("no key: %w", errNoPEM), "provide the key of " + CertFile + " in PEM format"}
	case block.Type == pemCertificate && !bytes.Contains(rest, []byte(pemKey)):
		return &FileError{KeyFile, ErrSwapped, "store the certificate in " + CertFile + " and the key in " + KeyFile}
	}
	return nil
}

var errNoPEM = errors.New("no PEM block found")

// validate returns why a client that connects to name would reject the pair.
func (p *certPair) validate(name string, now time.Time) error {
	leaf := p.tls.Leaf
	switch {
	case now.Before(leaf.NotBefore):
		return &FileError{CertFile, fmt.Errorf("%w: valid from %s", ErrNotYetValid, formatTime(leaf.NotBefore)),
			"wait, or correct the clock of this node"}
	case now.After(leaf.NotAfter):
		return &FileError{CertFile, fmt.Errorf("%w at %s", ErrExpired, formatTime(leaf.NotAfter)), "renew it"}
	}
	if err := leaf.VerifyHostname(name); err != nil {
		return &FileError{CertFile, err, "issue it for " + name}
	}
	if len(p.ca) == 0 {
		return nil
	}
	chains, err := p.verify(p.ca, name, now)
	if err != nil {
		return &FileError{CAFile, fmt.Errorf("does not verify %s: %w", CertFile, err), "provide the CA that signed " + CertFile}
	}
	p.roots, p.trustedUntil = nil, time.Time{}
	for _, chain := range chains {
		root := chain[len(chain)-1]
		p.roots, p.trustedUntil = append(p.roots, root), later(p.trustedUntil, root.NotAfter)
	}
	return nil
}

// trustedWherever reports whether every client that trusts q trusts p, with any of the
// authorities that verify q. It is false before q was validated, or without a
// ca.crt.
func (p *certPair) trustedWherever(q *certPair, name string, now time.Time) bool {
	return len(q.roots) > 0 && !slices.ContainsFunc(q.roots, func(root *x509.Certificate) bool {
		_, err := p.verify([]*x509.Certificate{root}, name, now)
		return err != nil
	})
}

// verify returns the chains by which an API server that trusts these authorities
// verifies the pair.
func (p *certPair) verify(trusted []*x509.Certificate, name string, now time.Time) ([][]*x509.Certificate, error) {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, ca := range trusted {
		roots.AddCert(ca)
	}
	for _, der := range p.tls.Certificate[1:] {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("read the chain: %w", err)
		}
		intermediates.AddCert(cert)
	}
	chains, err := p.tls.Leaf.Verify(x509.VerifyOptions{
		DNSName: name, Roots: roots, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		// x509's error contains the current time, so it would be logged each time.
		return nil, fmt.Errorf("authority %q is valid from %s to %s: %w", invalid.Cert.Subject, formatTime(invalid.Cert.NotBefore), formatTime(invalid.Cert.NotAfter), ErrExpired)
	}
	return chains, err
}

// equal reports whether certificate and authorities are the same.
func (p *certPair) equal(q *certPair) bool {
	return q != nil && p.sameLeaf(q) && bytes.Equal(encodeChain(p.ca), encodeChain(q.ca))
}

// sameLeaf reports whether the certificate chains are the same.
func (p *certPair) sameLeaf(q *certPair) bool {
	return bytes.Equal(bytes.Join(p.tls.Certificate, nil), bytes.Join(q.tls.Certificate, nil))
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
