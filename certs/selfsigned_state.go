package certs

import (
	"crypto/x509"
	"slices"
	"time"
)

// state is what the Secret records. It is a value: methods never modify data that
// copies share.
type state struct {
	current *signer             // signs new leaves; nil if missing or unreadable
	next    *signer             // staged: trusted, does not sign yet
	retired []*x509.Certificate // trusted for existing leaves, do not sign any more

	stagedAt     time.Time     // when next was staged
	publishedAt  time.Time     // when next was observed in the published bundle
	retiredUntil time.Time     // when no leaf of retired can be valid any more
	leafValidity time.Duration // the longest validity of leaves that any replica signs
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

// bundle returns the trusted authorities in PEM.
func (s state) bundle() []byte { return encodeCertificates(s.trusted()...) }

// retire adds to the retired authorities those of certs that s does not trust
// already. All of them are kept until no leaf that they signed can be valid.
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

// withoutRetired removes the retired authorities for which drop returns true.
func (s state) withoutRetired(drop func(*x509.Certificate) bool) state {
	s.retired = slices.DeleteFunc(slices.Clone(s.retired), drop)
	if len(s.retired) == 0 {
		s.retired, s.retiredUntil = nil, time.Time{}
	}
	return s
}

// withoutNext removes the staged authority.
func (s state) withoutNext() state {
	s.next, s.stagedAt, s.publishedAt = nil, time.Time{}, time.Time{}
	return s
}
