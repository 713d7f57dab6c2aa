package certs

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"overrule.dev/overrule/test/logbuffer"
	"overrule.dev/overrule/test/volume"
)

const servedName = "overrule.own.svc"

// testFiles is a Files with a directory like the mount of a kubelet. It reads the
// files only when a test calls reloadNow.
type testFiles struct {
	*Files
	t     *testing.T
	clock *clocktesting.FakeClock
	logs  logbuffer.Buffer
}

func newTestFiles(t *testing.T) *testFiles {
	t.Helper()
	m := &testFiles{t: t, clock: clocktesting.NewFakeClock(epoch)}
	m.Files = NewFiles(t.TempDir(), servedName, m.logs.Logger())
	m.now = m.clock.Now
	return m
}

// swap replaces all files at once.
func (m *testFiles) swap(files map[string][]byte) {
	m.t.Helper()
	volume.Mount(m.t, m.dir, files)
}

func (m *testFiles) reloadNow() { m.record(m.reload(m.t.Context())) }

func (m *testFiles) served() []byte {
	m.t.Helper()
	cert, err := m.GetCertificate(nil)
	require.NoError(m.t, err)
	return encodeCertificates(cert.Leaf)
}

// issueFiles returns the files of a certificate, valid for ten hours.
func issueFiles(t *testing.T, ca *signer, name string, hours float64) map[string][]byte {
	t.Helper()
	l, err := issueLeaf(ca, serverFor(name), 10*hour, at(hours))
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(l.tls.PrivateKey)
	require.NoError(t, err)
	return map[string][]byte{CertFile: encodeCertificates(l.tls.Leaf), KeyFile: pemOfKey(key), CAFile: ca.certPEM}
}

func TestFilesAreServedAsSoonAsTheyAreValid(t *testing.T) {
	m, ca, next := newTestFiles(t), newTestSigner(t, epoch), newTestSigner(t, epoch)
	m.reloadNow()
	require.ErrorIs(t, m.Healthy(nil), ErrNotReady)
	require.ErrorContains(t, m.Healthy(nil), m.dir+"/tls.crt: no such file or directory")
	require.NoError(t, m.Problem(), "Healthy reports it")
	_, err := m.GetCertificate(nil)
	require.ErrorIs(t, err, ErrNotReady)

	files, changed := issueFiles(t, ca, servedName, 0), m.Changed()
	m.swap(files)
	m.reloadNow()
	<-changed
	require.NoError(t, m.Healthy(nil))
	assert.Equal(t, files[CertFile], m.served())
	assert.Equal(t, string(ca.certPEM), string(m.CABundle()))
	assert.Equal(t, map[string]time.Time{NameServing: at(10), NameAuthority: at(90)}, m.Expiries())
	assert.False(t, m.NeedLeaderElection())
	logged := m.logs.String()
	m.reloadNow()
	assert.Equal(t, logged, m.logs.String(), "unchanged files are not logged")

	renewed := issueFiles(t, ca, servedName, 1)
	m.swap(renewed)
	m.reloadNow()
	assert.Equal(t, renewed[CertFile], m.served())

	renewed[CAFile] = bytes.Join([][]byte{ca.certPEM, next.certPEM, next.keyPEM}, nil)
	m.swap(renewed)
	m.reloadNow()
	assert.Equal(t, string(ca.certPEM)+string(next.certPEM), string(m.CABundle()), "an additional authority, and not what does not belong there")

	moved := issueFiles(t, next, servedName, 1)
	m.swap(moved)
	m.reloadNow()
	assert.Equal(t, moved[CertFile], m.served())
	assert.Equal(t, string(next.certPEM), string(m.CABundle()))

	delete(moved, CAFile)
	m.swap(moved)
	m.reloadNow()
	require.NoError(t, m.Healthy(nil))
	assert.Nil(t, m.CABundle(), "another client writes it")
	assert.Equal(t, map[string]time.Time{NameServing: at(11)}, m.Expiries())
}

func TestInvalidFilesAreReportedAndPreviousOnesServed(t *testing.T) {
	ca, other := newTestSigner(t, epoch), newTestSigner(t, epoch)
	truncate := func(data []byte) []byte { return data[:len(data)-30] }
	for name, test := range map[string]struct {
		change func(files map[string][]byte)
		hours  float64
		want   string
	}{
		"no certificate":                 {func(f map[string][]byte) { delete(f, CertFile) }, 0, "tls.crt: no such file"},
		"no key":                         {func(f map[string][]byte) { delete(f, KeyFile) }, 0, "tls.key: no such file"},
		"an empty certificate":           {func(f map[string][]byte) { f[CertFile] = nil }, 0, "failed to find any PEM data in certificate input"},
		"an empty authority":             {func(f map[string][]byte) { f[CAFile] = nil }, 0, "ca.crt: data does not contain any valid RSA or ECDSA certificates: provide the CA that signed tls.crt"},
		"a truncated key":                {func(f map[string][]byte) { f[KeyFile] = truncate(f[KeyFile]) }, 0, "failed to find any PEM data in key input"},
		"the key of another":             {func(f map[string][]byte) { f[KeyFile] = other.keyPEM }, 0, "private key does not match public key"},
		"certificate and key swapped":    {func(f map[string][]byte) { f[CertFile], f[KeyFile] = f[KeyFile], f[CertFile] }, 0, "PEM inputs may have been switched"},
		"the authority of another":       {func(f map[string][]byte) { f[CAFile] = other.certPEM }, 0, "ca.crt does not verify tls.crt: x509: certificate signed by unknown authority"},
		"another authority, not its own": {func(f map[string][]byte) { maps.Copy(f, issueFiles(t, other, servedName, 0)); f[CAFile] = ca.certPEM }, 0, "ca.crt does not verify tls.crt"},
		"one that is not valid yet":      {func(f map[string][]byte) { maps.Copy(f, issueFiles(t, ca, servedName, 20)) }, 0, "tls.crt is valid from 2026-01-01T17:00:00Z to 2026-01-02T06:00:00Z: renew it, or correct the clock of this node"},
		"one that is expired":            {func(f map[string][]byte) { maps.Copy(f, issueFiles(t, ca, servedName, -9)) }, 2, "to 2026-01-01T01:00:00Z: renew it"},
		"one for another name":           {func(f map[string][]byte) { maps.Copy(f, issueFiles(t, ca, "elsewhere", 0)) }, 0, "certificate is valid for elsewhere, not overrule.own.svc: issue it for overrule.own.svc"},
	} {
		t.Run(name, func(t *testing.T) {
			m, valid := newTestFiles(t), issueFiles(t, ca, servedName, 0)
			m.clock.SetTime(at(test.hours))
			m.swap(valid)
			m.reloadNow()
			invalid := issueFiles(t, ca, servedName, 0)
			test.change(invalid)
			m.swap(invalid)
			m.reloadNow()
			m.reloadNow()
			require.NoError(t, m.Healthy(nil), "the previous certificate is served")
			assert.Equal(t, valid[CertFile], m.served())
			assert.Equal(t, string(ca.certPEM), string(m.CABundle()))
			require.ErrorContains(t, m.Problem(), test.want)
			require.ErrorContains(t, m.Problem(), m.dir)
			require.ErrorContains(t, m.Problem(), "; the previous certificate files stay in use")
			assert.Equal(t, 1, strings.Count(m.logs.String(), "cannot sync certificate files"), "it is logged once")

			m.clock.SetTime(at(11))
			m.reloadNow()
			require.ErrorContains(t, m.Healthy(nil), "serving certificate expired at 2026-01-01T10:00:00Z: ")
			m.swap(issueFiles(t, ca, servedName, 11))
			m.reloadNow()
			require.NoError(t, m.Healthy(nil))
			require.NoError(t, m.Problem())
		})
	}
}

func TestExpiredAuthorityIsReported(t *testing.T) {
	m, ca := newTestFiles(t), newTestSigner(t, epoch)
	files := issueFiles(t, ca, servedName, 0)
	short := authorityTemplate("ca", hour, epoch)
	short.Subject, short.SubjectKeyId = ca.cert.Subject, ca.cert.SubjectKeyId
	der, err := x509.CreateCertificate(rand.Reader, short, short, ca.key.Public(), ca.key)
	require.NoError(t, err)
	expired, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	files[CAFile] = encodeCertificates(expired)
	m.clock.SetTime(at(2))
	m.swap(files)
	m.reloadNow()
	require.ErrorContains(t, m.Healthy(nil), "is valid from 2025-12-31T21:00:00Z to 2026-01-01T01:00:00Z: provide the CA that signed it")
}

// A running server notices a swap by the events of the file system.
func TestSwappedFilesAreNoticed(t *testing.T) {
	m, ca := newTestFiles(t), newTestSigner(t, time.Now())
	m.now = time.Now
	issue := func() map[string][]byte {
		return issueFiles(t, ca, servedName, time.Since(epoch).Hours())
	}
	m.swap(issue())
	done := make(chan error, 1)
	go func() { done <- m.Start(t.Context()) }()
	require.Eventually(t, func() bool { return m.Healthy(nil) == nil }, time.Minute, time.Millisecond)
	next := issue()
	m.swap(next)
	assert.Eventually(t, func() bool { return bytes.Equal(next[CertFile], m.served()) }, time.Minute, time.Millisecond)
}
