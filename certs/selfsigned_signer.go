package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"time"
)

// clockSkew is the tolerated difference between clocks. The validity of certificates
// starts that much before they are issued, and a retired authority is trusted for
// that much longer than its leaves can be valid. Lifetimes are counted from the
// issue time.
const clockSkew = 3 * time.Hour

// maxNameLength keeps a common name, with its date, within X.509's 64 characters.
const maxNameLength = 40

// signer is a certificate authority with its key. It is immutable.
type signer struct {
	cert *x509.Certificate
	key  crypto.Signer
	// As stored, so that encoding what was decoded changes no byte.
	certPEM, keyPEM []byte
}

// usable reports whether s can sign at now. A start of validity after now is due to
// another replica's clock, and no error.
func (s *signer) usable(now time.Time) bool {
	return s != nil && now.Before(s.cert.NotAfter)
}

// issueTime is when a certificate was signed, by the clock of its signer. One whose
// validity is shorter than clockSkew was not signed by this package.
func issueTime(cert *x509.Certificate) time.Time {
	if issued := cert.NotBefore.Add(clockSkew); issued.Before(cert.NotAfter) {
		return issued
	}
	return cert.NotBefore
}

// newSigner creates a self-signed authority.
func newSigner(name string, validity time.Duration, now time.Time) (*signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key of authority %s: %w", name, err)
	}
	template := authorityTemplate(name, validity, now)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority %s: %w", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key of authority %s: %w", name, err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: keyDER})
	return parseSigner(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}), keyPEM)
}

func authorityTemplate(name string, validity time.Duration, now time.Time) *x509.Certificate {
	if len(name) > maxNameLength {
		name = name[:maxNameLength]
	}
	return &x509.Certificate{
		// The date is for people; programs distinguish authorities by key id.
		Subject:               pkix.Name{CommonName: name + "@" + now.UTC().Format(time.RFC3339)},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // signs leaves only
	}
}
