package certs

import (
	"crypto/x509"
	"slices"
	"time"
)

// state is what the Secret records. It is a value: methods never edit what a
// copy shares.
type state struct {
	current *signer             // signs every new leaf; nil if there is none, or none readable
	next    *signer             // staged: trusted, signs nothing yet
	retired []*x509.Certificate // trusted for what they signed, sign nothing any more

	stagedAt     time.Time     // when next was staged
	publishedAt  time.Time     // when next was seen in the published bundle
	retiredUntil time.Time     // when nothing that retired signed can be alive
	leafValidity time.Duration // the longest life that any replica gives a leaf
}

// trusted lists every authority to trust: signing, staged, retired.
func (s state) trusted() []*x509.Certificate {
	var certs []*x509.Certificate
	for _, signer := range []*signer{s.current, s.next} {
		if signer != nil {
			certs = append(certs, signer.cert)
		}
	}
	return append(certs, s.retired...)
}

func (s state) trusts(cert *x509.Certificate) bool {
	return slices.ContainsFunc(s.trusted(), cert.Equal)
}

// bundle is trusted in PEM.
func (s state) bundle() []byte {
	var ders [][]byte
	for _, cert := range s.trusted() {
		ders = append(ders, cert.Raw)
	}
	return encodeCertificates(ders...)
}

// retire adds to the retired authorities those of certs that s does not trust
// already, and keeps all of them until nothing they signed by now can be alive.
func (s state) retire(now time.Time, certs ...*x509.Certificate) state {
	s.retired = slices.Clone(s.retired)
	for _, cert := range certs {
		if !s.trusts(cert) {
			s.retired = append(s.retired, cert)
		}
	}
	s.retiredUntil = later(s.retiredUntil, now.Add(s.leafValidity+clockSkew))
	return s
}

// withoutRetired drops the retired authorities that drop names.
func (s state) withoutRetired(drop func(*x509.Certificate) bool) state {
	s.retired = slices.DeleteFunc(slices.Clone(s.retired), drop)
	if len(s.retired) == 0 {
		s.retired, s.retiredUntil = nil, time.Time{}
	}
	return s
}

// withoutNext takes the staged authority away.
func (s state) withoutNext() state {
	s.next, s.stagedAt, s.publishedAt = nil, time.Time{}, time.Time{}
	return s
}
