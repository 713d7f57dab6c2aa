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

// skew is how far a start of validity lies in the past, and for how much longer
// than anything can live that an authority signed it is trusted: for clocks that
// disagree by that much. It is no part of a life: lives are counted from birth.
const clockSkew = 3 * time.Hour

// maxNameLength keeps a common name, with its date, within X.509's 64 characters.
const maxNameLength = 40

// signer is a certificate authority with its key. It is immutable.
type signer struct {
	cert *x509.Certificate
	key  crypto.Signer
	// As stored: kept so that writing back what was read changes no byte.
	certPEM, keyPEM []byte
}

// usable tells whether s can sign at now. A start of validity ahead of now is
// another replica's clock, not a fault.
func (s *signer) usable(now time.Time) bool {
	return s != nil && now.Before(s.cert.NotAfter)
}

// birthOf is when a certificate was signed, by the clock of who signed it. One
// that is too short-lived to be dated back by us is another's.
func issueTime(cert *x509.Certificate) time.Time {
	if birth := cert.NotBefore.Add(clockSkew); birth.Before(cert.NotAfter) {
		return birth
	}
	return cert.NotBefore
}

// renewalOf is two thirds into the life of cert.
func renewalTime(cert *x509.Certificate) time.Time {
	birth := issueTime(cert)
	return birth.Add(cert.NotAfter.Sub(birth) * 2 / 3)
}

// mint makes an authority that signs itself.
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
	return parseSigner(encodeCertificates(der), keyPEM)
}

func authorityTemplate(name string, validity time.Duration, now time.Time) *x509.Certificate {
	if len(name) > maxNameLength {
		name = name[:maxNameLength]
	}
	return &x509.Certificate{
		// The date tells two authorities apart for people; programs go by key id.
		Subject:               pkix.Name{CommonName: name + "@" + now.UTC().Format(time.RFC3339)},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // signs leaves alone
	}
}
