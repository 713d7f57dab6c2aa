package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
)

// publishedBundles are the bundles that clients trust, or the error of reading them.
type publishedBundles struct {
	mutating, validating []byte
	fail                 error
	absent               bool
	reads                atomic.Int32
}

func (c *publishedBundles) read(ctx context.Context) ([]TrustedBundle, error) {
	c.reads.Add(1)
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("the read needs a deadline")
	}
	if c.fail != nil || c.absent {
		return nil, c.fail
	}
	return []TrustedBundle{{"mutate", c.mutating}, {"validate", c.validating}}, nil
}

func (c *publishedBundles) publish(bundle []byte) { c.mutating, c.validating = bundle, bundle }

// newTrustedFiles serves a certificate of ca, which clients trust.
func newTrustedFiles(t *testing.T, ca *signer) (*testFiles, *publishedBundles) {
	t.Helper()
	c := &publishedBundles{}
	c.publish(ca.certPEM)
	m := newTestFiles(t, func(o *FilesOptions) { o.TrustedBundle = c.read })
	m.swap(issueFiles(t, ca, 0))
	m.reloadNow()
	require.NoError(t, m.Problem())
	return m, c
}

func (m *testFiles) advance(d time.Duration) {
	m.clock.Step(d)
	m.reloadNow()
}

func (m *testFiles) serves(files map[string][]byte) bool {
	m.t.Helper()
	return string(encodeCertificates(m.served().Raw)) == string(files[CertFile])
}

// pendingMessage is logged once for a certificate that clients may not trust yet.
const pendingMessage = "new certificate is pending"

// golden compares the text of an error with the golden file; the directory is DIR.
func (m *testFiles) golden(err error) {
	m.t.Helper()
	messages.Golden(m.t, strings.ReplaceAll(err.Error(), m.dir, "DIR"))
}

// assertBundle compares the bundle, in any order after its first certificate.
func assertBundle(t *testing.T, m *testFiles, want ...*signer) {
	t.Helper()
	got := parseTrusted(m.CABundle())
	require.Len(t, got, len(want))
	assert.Equal(t, want[0].cert.Raw, got[0].Raw, "ca.crt comes first")
	for _, s := range want {
		assert.Contains(t, string(m.CABundle()), string(s.certPEM))
	}
}

func TestCertificateOfNewAuthorityIsPendingUntilTrusted(t *testing.T) {
	old, next := newTestSigner(t, epoch), newTestSigner(t, epoch)
	m, c := newTrustedFiles(t, old)
	files := issueFiles(t, next, 0)
	m.swap(files)
	m.reloadNow()
	assert.False(t, m.serves(files))
	assertBundle(t, m, next, old)
	require.NoError(t, m.Healthy(nil))
	for _, part := range []string{filepath.Join(m.dir, CertFile), "2026-01-01T00:05:00Z", "caBundle of mutate", "2026-01-01T10:00:00Z"} {
		assert.ErrorContains(t, m.Problem(), part)
	}
	m.golden(m.Problem())
	assert.Equal(t, 1, strings.Count(m.log.String(), pendingMessage))

	c.mutating = m.CABundle()
	m.advance(20 * time.Second)
	assert.False(t, m.serves(files), "only one configuration has the authority")
	assert.ErrorContains(t, m.Problem(), "caBundle of validate")
	m.golden(m.Problem())

	c.validating = m.CABundle()
	m.advance(2 * time.Second)
	assert.False(t, m.serves(files), "some API server may not use it yet")
	assert.ErrorContains(t, m.Problem(), "10s")
	m.golden(m.Problem())
	m.advance(9 * time.Second)
	assert.False(t, m.serves(files))
	m.advance(time.Second)
	assert.True(t, m.serves(files))
	require.NoError(t, m.Problem())
	assert.Equal(t, 1, strings.Count(m.log.String(), pendingMessage), "it is logged once")
	assert.NotContains(t, m.log.String(), "calls may fail")
}

func TestRemovedTrustRestartsTheWait(t *testing.T) {
	old, next := newTestSigner(t, epoch), newTestSigner(t, epoch)
	m, c := newTrustedFiles(t, old)
	files := issueFiles(t, next, 0)
	m.swap(files)
	c.publish(next.certPEM)
	m.reloadNow()
	c.publish(old.certPEM)
	m.advance(9 * time.Second)
	c.publish(next.certPEM)
	m.advance(time.Second)
	m.advance(9 * time.Second)
	assert.False(t, m.serves(files))
	m.advance(time.Second)
	assert.True(t, m.serves(files))
}

func TestPendingCertificateTimesOut(t *testing.T) {
	for name, fail := range map[string]error{
		"it is not published":              nil,
		"the bundles cannot be read":       errors.New("forbidden"),
		"the API server cannot be reached": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			m, c := newTrustedFiles(t, newTestSigner(t, epoch))
			c.fail = fail
			files := issueFiles(t, newTestSigner(t, epoch), 0)
			m.swap(files)
			m.reloadNow()
			if fail != nil {
				assert.ErrorContains(t, m.Problem(), fail.Error())
				m.golden(m.Problem())
			}
			m.advance(5*time.Minute - time.Second)
			assert.False(t, m.serves(files))
			m.advance(time.Second)
			assert.True(t, m.serves(files))
			assert.Contains(t, m.log.String(), "serving a certificate that API servers may not trust; webhook calls may fail")
		})
	}
}

func TestStartingReplicaWaitsUntilNewAuthorityIsTrusted(t *testing.T) {
	old, next := newTestSigner(t, epoch), newTestSigner(t, epoch)
	c := &publishedBundles{}
	c.publish(old.certPEM)
	m, files := newTestFiles(t, func(o *FilesOptions) { o.TrustedBundle = c.read }), issueFiles(t, next, 0)
	m.swap(files)
	m.reloadNow()
	assertBundle(t, m, next) // once it leads, LoadTrusted adds the other one
	_, err := m.GetCertificate(nil)
	require.ErrorIs(t, err, ErrNotReady)
	assert.EqualError(t, m.Healthy(nil), err.Error())
	assert.ErrorContains(t, err, "caBundle of mutate")
	m.golden(err)
	m.advance(time.Hour)
	require.Error(t, m.Healthy(nil), "no client trusts it")
	assert.Equal(t, 1, strings.Count(m.log.String(), pendingMessage))

	c.publish(append(append([]byte(nil), old.certPEM...), next.certPEM...))
	m.advance(2 * time.Second)
	require.Error(t, m.Healthy(nil))
	m.golden(m.Healthy(nil))
	c.fail = errors.New("no connection")
	m.advance(9 * time.Second)
	require.Error(t, m.Healthy(nil))
	c.fail = nil
	m.advance(time.Second)
	require.NoError(t, m.Healthy(nil))
	assert.True(t, m.serves(files))
}

func TestStartingReplicaServesReplacedFiles(t *testing.T) {
	old := newTestSigner(t, epoch)
	c := &publishedBundles{}
	c.publish(old.certPEM)
	m := newTestFiles(t, func(o *FilesOptions) { o.TrustedBundle = c.read })
	m.swap(issueFiles(t, newTestSigner(t, epoch), 0))
	m.reloadNow()
	require.Error(t, m.Healthy(nil))
	files := issueFiles(t, old, 0)
	m.swap(files)
	m.reloadNow()
	assert.True(t, m.serves(files))
}

func TestStartingReplicaServesTrustedCertificateAtOnce(t *testing.T) {
	ca, other := newTestSigner(t, epoch), newTestSigner(t, epoch)
	for name, c := range map[string]*publishedBundles{
		"it is in the configurations":            {mutating: ca.certPEM, validating: ca.certPEM},
		"no configurations yet":                  {absent: true},
		"the bundles cannot be read":             {mutating: other.certPEM, validating: other.certPEM, fail: errors.New("forbidden")},
		"one of the two is another's, or broken": {mutating: other.certPEM, validating: ca.certPEM},
	} {
		t.Run(name, func(t *testing.T) {
			m, files := newTestFiles(t, func(o *FilesOptions) { o.TrustedBundle = c.read }), issueFiles(t, ca, 0)
			m.swap(files)
			m.reloadNow()
			assert.True(t, m.serves(files))
		})
	}
}

func TestNothingIsPendingWhileServedCertificateIsExpired(t *testing.T) {
	m, _ := newTrustedFiles(t, newTestSigner(t, epoch))

	m.clock.SetTime(at(10.5))
	files := issueFiles(t, newTestSigner(t, epoch), 10)
	m.swap(files)
	m.reloadNow()
	assert.True(t, m.serves(files), "the served certificate is expired")

	files = issueFiles(t, newTestSigner(t, epoch), 10.5)
	m.swap(files)
	m.reloadNow()
	require.False(t, m.serves(files))
	m.clock.SetTime(at(20.4))
	m.reloadNow()
	assert.True(t, m.serves(files), "it expired meanwhile")
}

func TestTrustedCertificateIsServedAtOnce(t *testing.T) {
	ca := newTestSigner(t, epoch)
	m, c := newTrustedFiles(t, ca)
	c.fail = errors.New("must not be read")
	previous := c.reads.Load()
	files := issueFiles(t, ca, 1)
	m.swap(files)
	m.reloadNow()
	assert.True(t, m.serves(files), "the authority that signed what is served")
	assert.Equal(t, previous, c.reads.Load())

	// API servers may know but the one of the two that signed what is served.
	next := newTestSigner(t, epoch)
	files[CAFile] = append([]byte(nil), append(ca.certPEM, next.certPEM...)...)
	m.swap(files)
	m.reloadNow()
	pending := issueFiles(t, next, 1)
	pending[CAFile] = files[CAFile]
	m.swap(pending)
	m.reloadNow()
	assert.False(t, m.serves(pending), "trusted by the previous files, and not by all clients yet")
}

func TestWithoutTrustedBundleNothingIsPending(t *testing.T) {
	m, next := newTestFiles(t, nil), newTestSigner(t, epoch)
	m.swap(issueFiles(t, newTestSigner(t, epoch), 0))
	m.reloadNow()
	files := issueFiles(t, next, 0)
	m.swap(files)
	m.reloadNow()
	assert.True(t, m.serves(files))
	assertBundle(t, m, next)
	m.LoadTrusted(t.Context())
	assertBundle(t, m, next)
}

func TestFirstAuthorityIsPublishedWithTheExistingOne(t *testing.T) {
	theirs, ours := newTestSigner(t, epoch), newTestSigner(t, epoch)
	c := &publishedBundles{}
	c.publish(theirs.certPEM)
	m := newTestFiles(t, func(o *FilesOptions) { o.TrustedBundle = c.read })
	first := issueFiles(t, theirs, 0)
	delete(first, CAFile)
	m.swap(first)
	m.reloadNow()
	require.Nil(t, m.CABundle())
	assert.Zero(t, c.reads.Load())
	m.swap(issueFiles(t, ours, 0))
	m.reloadNow()
	assert.True(t, m.serves(first))
	assertBundle(t, m, ours, theirs)
}

func TestWithoutConfigurationsCertificateIsPendingBriefly(t *testing.T) {
	m, c := newTrustedFiles(t, newTestSigner(t, epoch))
	c.absent = true
	files := issueFiles(t, newTestSigner(t, epoch), 0)
	m.swap(files)
	m.reloadNow()
	m.advance(10 * time.Second)
	assert.True(t, m.serves(files))
}

func TestInvalidFilesDoNotEndTheWait(t *testing.T) {
	next := newTestSigner(t, epoch)
	m, c := newTrustedFiles(t, newTestSigner(t, epoch))
	files := issueFiles(t, next, 0)
	m.swap(files)
	m.reloadNow()
	m.swap(map[string][]byte{CertFile: files[CertFile]})
	m.reloadNow()
	assert.ErrorIs(t, m.Problem(), ErrMissing, "the error of the files comes first")
	c.publish(m.CABundle())
	m.advance(time.Second)
	m.advance(10 * time.Second)
	assert.True(t, m.serves(files), "they were valid")
}

func TestPendingCertificateThatExpiresIsDropped(t *testing.T) {
	m, c := newTrustedFiles(t, newTestSigner(t, epoch))
	c.fail = errors.New("no")
	m.clock.SetTime(at(9.95))
	previous := m.served()
	files := issueFiles(t, newTestSigner(t, epoch), -0.01)
	m.swap(files)
	m.reloadNow()
	require.NotNil(t, m.pending.Load())
	m.swap(nil)
	m.clock.SetTime(at(9.995))
	m.reloadNow()
	assert.Nil(t, m.pending.Load())
	assert.Equal(t, previous, m.served())
}

func TestRevertedFilesEndTheWait(t *testing.T) {
	old, next := newTestSigner(t, epoch), newTestSigner(t, epoch)
	m, _ := newTrustedFiles(t, old)
	was := map[string][]byte{}
	for _, name := range []string{CertFile, KeyFile, CAFile} {
		data, err := readFile(filepath.Join(m.dir, name))
		require.NoError(t, err)
		was[name] = data
	}
	m.swap(issueFiles(t, next, 0))
	m.reloadNow()
	require.Error(t, m.Problem())
	m.swap(was)
	m.reloadNow()
	require.NoError(t, m.Problem())
	assert.True(t, m.serves(was))
	assertBundle(t, m, old, next)
}

func TestFormerAuthorityIsPublishedForAnHour(t *testing.T) {
	a, b, z := newTestSigner(t, epoch), newTestSigner(t, epoch), newTestSigner(t, epoch)
	m, c := newTrustedFiles(t, a)
	m.swap(issueFiles(t, b, 0))
	m.reloadNow()
	m.advance(30 * time.Minute)
	m.swap(issueFiles(t, z, 0))
	m.reloadNow()
	assertBundle(t, m, z, b, a)
	m.advance(30*time.Minute - time.Second)
	assertBundle(t, m, z, b, a)
	changed := m.Changed()
	m.advance(time.Second)
	assertBundle(t, m, z, b)
	<-changed
	c.publish(a.certPEM) // not published again yet
	m.LoadTrusted(t.Context())
	assertBundle(t, m, z, b)
	m.advance(30 * time.Minute)
	assertBundle(t, m, z)

	m.swap(issueFiles(t, a, 1))
	m.reloadNow()
	assertBundle(t, m, a, z)
	m.advance(10 * time.Minute)
	m.swap(issueFiles(t, z, 1))
	m.reloadNow()
	m.advance(59 * time.Minute)
	assertBundle(t, m, z, a)
}

func TestExpiredFormerAuthorityIsRemoved(t *testing.T) {
	ca := newTestSigner(t, epoch)
	m, _ := newTrustedFiles(t, ca)
	next := newTestSigner(t, at(ca.cert.NotAfter.Sub(epoch).Hours()-0.5))
	m.clock.SetTime(ca.cert.NotAfter.Add(-20 * time.Minute))
	m.swap(issueFiles(t, next, ca.cert.NotAfter.Sub(epoch).Hours()-0.5))
	m.reloadNow()
	assertBundle(t, m, next, ca)
	m.advance(21 * time.Minute)
	assertBundle(t, m, next)
}

func TestLoadTrustedKeepsPublishedAuthorities(t *testing.T) {
	mine, theirs := newTestSigner(t, epoch), newTestSigner(t, epoch)
	m, c := newTrustedFiles(t, mine)
	c.mutating = []byte("no certificate at all\n" + string(theirs.certPEM) + string(pemOfKey([]byte("x"))) + string(encodeCertificates([]byte("none"))))
	m.LoadTrusted(t.Context())
	assertBundle(t, m, mine, theirs)
	m.advance(time.Hour)
	assertBundle(t, m, mine)
}

func TestLoadTrustedReportsErrorsAndRetries(t *testing.T) {
	mine, theirs := newTestSigner(t, epoch), newTestSigner(t, epoch)
	m, c := newTrustedFiles(t, mine)
	fail := errors.New("forbidden")
	previous := c.reads.Load()
	m.opts.TrustedBundle = func(ctx context.Context) ([]TrustedBundle, error) {
		if c.reads.Load() == previous {
			c.reads.Add(1)
			return nil, fail
		}
		assert.ErrorIs(t, m.Problem(), fail)
		m.golden(m.Problem())
		c.publish(theirs.certPEM)
		return c.read(ctx)
	}
	m.LoadTrusted(t.Context())
	assertBundle(t, m, mine, theirs)
	require.NoError(t, m.Problem())
	assert.Equal(t, 1, strings.Count(m.log.String(), "webhook configurations are not updated"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.fail, m.opts.TrustedBundle = fail, c.read
	m.LoadTrusted(ctx) // ends
}

func TestPendingCertificateIsPolledFaster(t *testing.T) {
	next := newTestSigner(t, epoch)
	m, c := newTrustedFiles(t, newTestSigner(t, epoch))
	m.watcher.poll = time.Hour
	files := issueFiles(t, next, 0)
	m.swap(files)
	c.publish(next.certPEM)
	previous := c.reads.Load()
	startFiles(t, m)
	require.Eventually(t, func() bool { return c.reads.Load() > previous }, time.Minute, time.Millisecond)
	m.clock.Step(bundlePropagation)
	m.eventuallyServes(files)
}

func TestTrustedWherever(t *testing.T) {
	ca, next := newTestSigner(t, epoch), newTestSigner(t, epoch)
	of := func(files map[string][]byte) *certPair {
		p, err := readCertPair(files)
		require.NoError(t, err)
		require.NoError(t, p.validate(servedName, at(1)))
		return p
	}
	p, renewed, other := of(issueFiles(t, ca, 0)), of(issueFiles(t, ca, 1)), of(issueFiles(t, next, 0))
	assert.Equal(t, []*x509.Certificate{ca.cert}, p.roots)
	assert.True(t, renewed.trustedWherever(p, servedName, at(1)))
	assert.False(t, other.trustedWherever(p, servedName, at(1)))
	p.roots = append(p.roots, next.cert)
	assert.False(t, renewed.trustedWherever(p, servedName, at(1)))
	p.roots = nil
	assert.False(t, renewed.trustedWherever(p, servedName, at(1)))
}
