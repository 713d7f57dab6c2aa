package certs

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

func encodeCertificates(certs ...*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range certs {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw}))
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
	return &signer{cert: pair.Leaf, key: key, certPEM: certPEM, keyPEM: keyPEM}, checkAuthority(pair.Leaf)
}

// parseAuthorities returns the authorities of a bundle, and an error that joins those of
// everything else in it.
func parseAuthorities(data []byte) ([]*x509.Certificate, error) {
	certs, err := cert.ParseCertsPEM(data)
	var valid []*x509.Certificate
	for _, c := range certs {
		if invalid := checkAuthority(c); invalid != nil {
			err = errors.Join(err, invalid)
			continue
		}
		valid = append(valid, c)
	}
	return valid, err
}

func checkAuthority(c *x509.Certificate) error {
	if c.IsCA && c.BasicConstraintsValid && c.KeyUsage&x509.KeyUsageCertSign != 0 {
		return nil
	}
	return fmt.Errorf("certificate %q is not a certificate authority", c.Subject.CommonName)
}

// readCertificates returns the certificates of a file, of which there is at least one.
func readCertificates(path string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the path is a flag's
	if err != nil {
		return nil, err
	}
	certs, err := cert.ParseCertsPEM(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return certs, nil
}

func poolOf(certs []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool
}

// verifyChain verifies a certificate, which its intermediates follow, for a use. name may be
// empty. Unlike in crypto/tls, roots may be those of the moment.
func verifyChain(certs []*x509.Certificate, roots *x509.CertPool, name string, usage x509.ExtKeyUsage, now time.Time) ([][]*x509.Certificate, error) {
	if len(certs) == 0 {
		return nil, errors.New("no certificate")
	}
	chains, err := certs[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: poolOf(certs[1:]), DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: now,
	})
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		// x509's error contains the current time, so it would be logged each time.
		return nil, fmt.Errorf("certificate %q is valid from %s to %s", invalid.Cert.Subject, formatTime(invalid.Cert.NotBefore), formatTime(invalid.Cert.NotAfter))
	}
	return chains, err
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func earlier(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

func later(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
