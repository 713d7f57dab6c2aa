package certs

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

func encodeCertificates(ders ...[]byte) []byte {
	var out bytes.Buffer
	for _, der := range ders {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}))
	}
	return out.Bytes()
}

// parseSigner parses an authority and its key, which must match.
func parseSigner(certPEM, keyPEM []byte) (*signer, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read certificate and key: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key of type %T cannot sign", pair.PrivateKey)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	if !canSign(cert) {
		return nil, fmt.Errorf("certificate %q: %w", cert.Subject.CommonName, ErrNotAuthority)
	}
	return &signer{cert: cert, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

func canSign(cert *x509.Certificate) bool {
	return cert.IsCA && cert.BasicConstraintsValid && cert.KeyUsage&x509.KeyUsageCertSign != 0
}

// parseBundle parses the authorities of a bundle. It returns the valid ones, and an
// error that joins those of the others.
func parseBundle(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	var errs []error
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		cert, err := parseAuthority(block)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 && len(errs) == 0 {
		errs = append(errs, ErrNotPEM)
	}
	return certs, errors.Join(errs...)
}

func parseAuthority(block *pem.Block) (*x509.Certificate, error) {
	if block.Type != pemCertificate {
		return nil, fmt.Errorf("block of type %q: %w", block.Type, ErrNotPEM)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	if !canSign(cert) {
		return nil, fmt.Errorf("certificate %q: %w", cert.Subject.CommonName, ErrNotAuthority)
	}
	return cert, nil
}
