package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pemOfKey(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der})
}

// serverFor returns the identity of a server of some names.
func serverFor(names ...string) *identity {
	return &identity{names: names, usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

func TestNewSigner(t *testing.T) {
	s, err := newSigner(strings.Repeat("long", 40), 365*24*hour, epoch)
	require.NoError(t, err)
	assert.True(t, s.cert.IsCA)
	assert.True(t, s.cert.MaxPathLenZero, "it signs only leaves")
	assert.Equal(t, epoch.Add(-3*hour), s.cert.NotBefore, "three hours for clocks that are behind")
	assert.Equal(t, epoch.Add(365*24*hour), s.cert.NotAfter)
	assert.LessOrEqual(t, len(s.cert.Subject.CommonName), 64)
	key, ok := s.key.(*ecdsa.PrivateKey)
	require.True(t, ok)
	assert.Equal(t, elliptic.P256(), key.Curve)
	assert.NotEmpty(t, s.cert.SubjectKeyId, "it distinguishes authorities of the same name")
}

func TestIssueLeaf(t *testing.T) {
	ca := newTestSigner(t, epoch)
	tests := map[string]struct {
		now                 time.Time
		validity            time.Duration
		notBefore, notAfter time.Time
	}{
		"lives as long as asked for":       {at(20), 20 * hour, at(17), at(40)},
		"short: as much for clocks behind": {at(20), hour, at(17), at(21)},
		"never outlives its authority":     {at(85), 10 * hour, at(82), at(90)},
		"never older than its authority":   {at(-0.5), 20 * hour, at(-3), at(19.5)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, err := issueLeaf(ca, serverFor("svc.ns.svc", "10.0.0.1"), test.validity, test.now)
			require.NoError(t, err)
			cert := l.tls.Leaf
			assert.Equal(t, test.notBefore, cert.NotBefore)
			assert.Equal(t, test.notAfter, cert.NotAfter)
			assert.Equal(t, []string{"svc.ns.svc"}, cert.DNSNames)
			require.Len(t, cert.IPAddresses, 1)
			assert.True(t, net.ParseIP("10.0.0.1").Equal(cert.IPAddresses[0]))
			require.NoError(t, cert.CheckSignatureFrom(ca.cert))
			assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, cert.ExtKeyUsage)
			assert.False(t, cert.IsCA)
		})
	}
}

func TestLeafRenewalTime(t *testing.T) {
	ca := newTestSigner(t, epoch)
	seen := map[time.Time]bool{}
	for range 50 {
		l, err := issueLeaf(ca, serverFor("a"), 10*hour, at(10)) // lives from hour 10 to 20
		require.NoError(t, err)
		latest := at(10).Add(10 * hour * 2 / 3)
		assert.False(t, l.renewAt.After(latest), "renewal %s", l.renewAt)
		assert.False(t, l.renewAt.Before(latest.Add(-10*hour/30)), "renewal %s", l.renewAt)
		seen[l.renewAt] = true
	}
	assert.Greater(t, len(seen), 1, "replicas must not all renew together")
}

func TestNeedsLeaf(t *testing.T) {
	old, young := newTestSigner(t, epoch), newTestSigner(t, at(60))
	l, err := issueLeaf(old, serverFor("a"), 10*hour, at(60))
	require.NoError(t, err)
	retiring := state{current: young, retired: []*x509.Certificate{old.cert}}
	assert.True(t, needsLeaf(nil, retiring, at(60)), "none yet")
	assert.False(t, needsLeaf(l, retiring, at(61)), "its issuer is still trusted")
	assert.True(t, needsLeaf(l, state{current: young}, at(61)), "its issuer is not trusted any more")
	assert.True(t, needsLeaf(l, retiring, l.renewAt), "two thirds of its life are over")
}

func TestNextAt(t *testing.T) {
	old, young := newTestSigner(t, epoch), newTestSigner(t, at(60))
	renewal := renewalTime(old.cert)
	tests := map[string]struct {
		state state
		want  time.Time
	}{
		"stable: staging":                     {state{current: old}, renewal},
		"retiring: the end of it":             {state{current: old, retired: []*x509.Certificate{young.cert}, retiredUntil: at(5)}, at(5)},
		"staged: the long wait":               {state{current: old, next: young, stagedAt: at(60)}, at(68)},
		"published: propagation":              {state{current: old, next: young, stagedAt: at(60), publishedAt: at(61)}, at(62)},
		"published late: while there is time": {state{current: old, next: young, stagedAt: at(60), publishedAt: at(82)}, at(82.5)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, testRules.nextAt(test.state, observation{}))
		})
	}
}

func TestAuthorityRenewalTime(t *testing.T) {
	for _, life := range []time.Duration{15 * time.Second, 3 * hour, 90 * hour} {
		s, err := newSigner("ca", life, epoch)
		require.NoError(t, err)
		assert.Equal(t, epoch.Add(life*2/3), renewalTime(s.cert), life)
	}
	theirs := &x509.Certificate{NotBefore: epoch, NotAfter: at(1.5)}
	assert.Equal(t, at(1), renewalTime(theirs), "an external one whose start is not backdated")
}

func TestPromotionUsesTheLocalClock(t *testing.T) {
	old, young := newTestSigner(t, epoch), newTestSigner(t, at(60))
	s := state{current: old, next: young, stagedAt: at(60), publishedAt: at(61)}
	for name, c := range map[string]struct {
		seen observation
		want time.Time
	}{
		"never observed before":              {observation{}, at(62)},
		"observed by a clock that is behind": {observation{at(61), at(59)}, at(62)},
		"observed by a clock that is ahead":  {observation{at(61), at(63)}, at(64)},
		"an earlier one was observed":        {observation{at(50), at(63)}, at(62)},
	} {
		assert.Equal(t, c.want, testRules.promotionAt(s, c.seen), name)
	}
	first := observation{}.observe(at(61), at(63))
	assert.Equal(t, first, first.observe(at(61), at(70)), "the first time counts")
	assert.Equal(t, observation{at(62), at(70)}, first.observe(at(62), at(70)))
}
