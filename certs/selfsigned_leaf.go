package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// identity is what a replica signs certificates for itself for.
type identity struct {
	atomic.Pointer[leaf] // nil until the first is signed
	names                []string
	usages               []x509.ExtKeyUsage
}

// leaf is a certificate in use. It is immutable.
type leaf struct {
	tls     *tls.Certificate
	issuer  *x509.Certificate
	renewAt time.Time
}

func (l *leaf) notAfter() time.Time { return l.tls.Leaf.NotAfter }

// needsLeaf reports whether a replica that serves l must sign a new leaf under s.
func needsLeaf(l *leaf, s state, now time.Time) bool {
	return l == nil || !s.trusts(l.issuer) || !now.Before(l.renewAt)
}

// issueLeaf signs a certificate with a new key. It expires no later than its authority.
func issueLeaf(ca *signer, i *identity, validity time.Duration, now time.Time) (*leaf, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key for %s: %w", i.names[0], err)
	}
	template := leafTemplate(ca, i.names, validity, now)
	template.ExtKeyUsage = i.usages
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate for %s: %w", i.names[0], err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse certificate for %s: %w", i.names[0], err)
	}
	pair := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}
	return &leaf{tls: pair, issuer: ca.cert, renewAt: jitteredRenewal(now, cert.NotAfter)}, nil
}

func leafTemplate(ca *signer, names []string, validity time.Duration, now time.Time) *x509.Certificate {
	template := &x509.Certificate{
		NotBefore:             later(now.Add(-clockSkew), ca.cert.NotBefore),
		NotAfter:              earlier(now.Add(validity), ca.cert.NotAfter),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
	// The common name has a length limit, and clients ignore it: it is for people.
	if len(names[0]) <= maxNameLength {
		template.Subject = pkix.Name{CommonName: names[0]}
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	return template
}
