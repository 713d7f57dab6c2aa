package certs

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"overrule.dev/overrule/test/messages"
)

const servedName = "overrule.own.svc"

// testFiles is a Files with a directory like the mount of a kubelet. It reads the
// files only when a test calls reloadNow.
type testFiles struct {
	*Files
	t     *testing.T
	dir   string
	clock *clocktesting.FakeClock
	log   logBuffer
	swaps int
}

// logBuffer collects log lines. It is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) WriteString(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(s)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func newTestFiles(t *testing.T, change func(*FilesOptions)) *testFiles {
	t.Helper()
	m := &testFiles{t: t, dir: filepath.Join(t.TempDir(), "certs"), clock: clocktesting.NewFakeClock(epoch)}
	opts := FilesOptions{Dir: m.dir, Name: servedName, Clock: m.clock, Log: funcr.New(func(_, args string) {
		m.log.WriteString(args + "\n")
	}, funcr.Options{})}
	if change != nil {
		change(&opts)
	}
	files, err := NewFiles(opts)
	require.NoError(t, err)
	m.Files = files
	return m
}

// swap replaces all files at once.
func (m *testFiles) swap(files map[string][]byte) {
	m.t.Helper()
	m.swaps++
	data := "..data_" + strings.Repeat("i", m.swaps)
	require.NoError(m.t, os.MkdirAll(filepath.Join(m.dir, data), 0o700))
	for name, content := range files {
		require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, data, name), content, 0o600))
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(m.dir, name))
	}
	link := filepath.Join(m.dir, "..data_tmp")
	require.NoError(m.t, os.Symlink(data, link))
	require.NoError(m.t, os.Rename(link, filepath.Join(m.dir, dataLink)))
}

func (m *testFiles) reloadNow() { m.reload(m.t.Context()) }

func (m *testFiles) served() *x509.Certificate {
	m.t.Helper()
	cert, err := m.GetCertificate(nil)
	require.NoError(m.t, err)
	return cert.Leaf
}

// issueFiles returns the files of a certificate for servedName, valid for ten hours.
func issueFiles(t *testing.T, ca *signer, hours float64) map[string][]byte {
	t.Helper()
	l, err := issueLeaf(ca, []string{servedName}, 10*hour, at(hours))
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(l.tls.PrivateKey)
	require.NoError(t, err)
	return map[string][]byte{CertFile: encodeCertificates(l.tls.Leaf.Raw), KeyFile: pemOfKey(key), CAFile: ca.certPEM}
}

func TestFilesAreServedWithTheirAuthority(t *testing.T) {
	m, ca := newTestFiles(t, nil), newTestSigner(t, epoch)
	files := issueFiles(t, ca, 0)
	m.swap(files)
	changed := m.Changed()
	m.reloadNow()
	assert.Equal(t, files[CertFile], encodeCertificates(m.served().Raw))
	assert.Equal(t, string(ca.certPEM), string(m.CABundle()))
	<-changed
	require.NoError(t, m.Healthy(nil))
	require.NoError(t, m.Problem())
	assert.False(t, m.NeedLeaderElection())

	m.log.Reset()
	m.reloadNow()
	assert.Empty(t, m.log.String(), "unchanged files are not logged")
}

func TestFilesWithoutAnAuthorityHaveNoBundle(t *testing.T) {
	m, ca := newTestFiles(t, nil), newTestSigner(t, epoch)
	files := issueFiles(t, ca, 0)
	delete(files, CAFile)
	m.swap(files)
	m.reloadNow()
	require.NoError(t, m.Healthy(nil))
	assert.Nil(t, m.CABundle())

	m = newTestFiles(t, func(o *FilesOptions) { o.RequireCA = true })
	m.swap(files)
	m.reloadNow()
	require.ErrorIs(t, m.Healthy(nil), ErrNotReady)
	assertFileError(t, m.Healthy(nil), m.dir, CAFile, ErrMissing)
}

func TestNewFilesAreServed(t *testing.T) {
	m, ca, next := newTestFiles(t, nil), newTestSigner(t, epoch), newTestSigner(t, epoch)
	m.swap(issueFiles(t, ca, 0))
	m.reloadNow()
	renewed := issueFiles(t, ca, 1)
	m.swap(renewed)
	m.reloadNow()
	assert.Equal(t, renewed[CertFile], encodeCertificates(m.served().Raw))

	both := bytes.Join([][]byte{ca.certPEM, next.certPEM}, nil)
	renewed[CAFile] = both
	m.swap(renewed)
	m.reloadNow()
	assert.Equal(t, string(both), string(m.CABundle()), "an additional authority is published without a new certificate")
}

func TestPlainFilesAreServed(t *testing.T) {
	m := newTestFiles(t, nil)
	m.reloadNow()
	require.ErrorIs(t, m.Healthy(nil), ErrNotReady)
	assertFileError(t, m.Healthy(nil), m.dir, CertFile, ErrMissing)
	_, err := m.GetCertificate(nil)
	require.ErrorIs(t, err, ErrNotReady)
	require.ErrorIs(t, err, ErrMissing)

	require.NoError(t, os.MkdirAll(m.dir, 0o700))
	files := issueFiles(t, newTestSigner(t, epoch), 0)
	for _, name := range []string{CertFile, KeyFile, CAFile} {
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, name), files[name], 0o600))
		m.reloadNow()
	}
	require.NoError(t, m.Healthy(nil))
	require.NoError(t, m.Problem())
	assert.Contains(t, m.log.String(), "certificate files are valid again")
}

// truncate removes the last bytes of a file.
func truncate(data []byte, last int) []byte { return data[:len(data)-last] }

// assertFileError checks that err is that of a file of a directory, and wraps target,
// unless that is nil. In the golden file, the directory is DIR.
func assertFileError(t *testing.T, err error, dir, file string, target error) {
	t.Helper()
	var of *FileError
	require.ErrorAs(t, err, &of)
	assert.Equal(t, filepath.Join(dir, file), of.Path)
	if target != nil {
		require.ErrorIs(t, err, target)
	}
	messages.Golden(t, strings.ReplaceAll(err.Error(), dir, "DIR"))
}

func TestInvalidFilesAreReportedAndPreviousOnesServed(t *testing.T) {
	ca, other := newTestSigner(t, epoch), newTestSigner(t, epoch)
	long := issueFiles(t, other, 0)[CertFile]
	tests := map[string]struct {
		change func(files map[string][]byte)
		hours  float64
		is     error
		file   string
	}{
		"no certificate":                    {func(f map[string][]byte) { delete(f, CertFile) }, 0, ErrMissing, "tls.crt"},
		"no key":                            {func(f map[string][]byte) { delete(f, KeyFile) }, 0, ErrMissing, "tls.key"},
		"a removed authority":               {func(f map[string][]byte) { delete(f, CAFile) }, 0, ErrMissing, "ca.crt"},
		"an empty certificate":              {func(f map[string][]byte) { f[CertFile] = nil }, 0, ErrNotPEM, "tls.crt"},
		"an empty key":                      {func(f map[string][]byte) { f[KeyFile] = nil }, 0, errNoPEM, "tls.key"},
		"an empty authority":                {func(f map[string][]byte) { f[CAFile] = nil }, 0, ErrNotPEM, "ca.crt"},
		"a truncated certificate":           {func(f map[string][]byte) { f[CertFile] = truncate(f[CertFile], 30) }, 0, ErrTruncated, "tls.crt"},
		"a truncated chain":                 {func(f map[string][]byte) { f[CertFile] = append(f[CertFile], truncate(long, 99)...) }, 0, ErrTruncated, "tls.crt"},
		"a truncated key":                   {func(f map[string][]byte) { f[KeyFile] = truncate(f[KeyFile], 30) }, 0, ErrTruncated, "tls.key"},
		"the key of another":                {func(f map[string][]byte) { f[KeyFile] = other.keyPEM }, 0, ErrMismatch, "tls.key"},
		"certificate and key swapped":       {func(f map[string][]byte) { f[CertFile], f[KeyFile] = f[KeyFile], f[CertFile] }, 0, ErrSwapped, "tls.crt"},
		"a certificate in place of the key": {func(f map[string][]byte) { f[KeyFile] = f[CertFile] }, 0, ErrSwapped, "tls.key"},
		"another block":                     {func(f map[string][]byte) { f[CertFile] = []byte("-----BEGIN X-----\nAAAA\n-----END X-----\n") }, 0, ErrNotPEM, "tls.crt"},
		"a block that is no certificate":    {func(f map[string][]byte) { f[CertFile] = encodeCertificates([]byte("no")) }, 0, nil, "tls.crt"},
		"the authority of another":          {func(f map[string][]byte) { f[CAFile] = other.certPEM }, 0, nil, "ca.crt"},
		"one that is not valid yet":         {func(f map[string][]byte) { maps.Copy(f, issueFiles(t, ca, 20)) }, 0, ErrNotYetValid, "tls.crt"},
		"one that is expired":               {func(f map[string][]byte) { maps.Copy(f, issueFiles(t, ca, -9)) }, 2, ErrExpired, "tls.crt"},
		"one for another name": {func(f map[string][]byte) {
			l, err := issueLeaf(ca, []string{"elsewhere"}, 10*hour, epoch)
			require.NoError(t, err)
			key, err := x509.MarshalPKCS8PrivateKey(l.tls.PrivateKey)
			require.NoError(t, err)
			f[CertFile], f[KeyFile] = encodeCertificates(l.tls.Leaf.Raw), pemOfKey(key)
		}, 0, nil, "tls.crt"},
		"a file without an end": {func(f map[string][]byte) { f[CAFile] = bytes.Repeat([]byte("a"), fileLimit+1) }, 0, ErrTooLarge, "ca.crt"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m, valid := newTestFiles(t, nil), issueFiles(t, ca, 0)
			m.clock.SetTime(at(test.hours))
			m.swap(valid)
			m.reloadNow()
			invalid := issueFiles(t, ca, 0)
			test.change(invalid)
			m.swap(invalid)
			m.reloadNow()
			require.NoError(t, m.Healthy(nil), "the previous certificate is served")
			assert.Equal(t, valid[CertFile], encodeCertificates(m.served().Raw))
			assert.Equal(t, string(ca.certPEM), string(m.CABundle()))
			decodeErr := m.Problem()
			assertFileError(t, decodeErr, m.dir, test.file, test.is)
			assert.ErrorContains(t, decodeErr, "2026-01-01T10:00:00Z", "when the previous certificate expires")
			assert.Equal(t, 1, strings.Count(m.log.String(), "invalid certificate files"))
			m.reloadNow()
			assert.Equal(t, 1, strings.Count(m.log.String(), "invalid certificate files"), "it is logged once")

			m.clock.SetTime(at(11))
			m.reloadNow()
			require.ErrorContains(t, m.Healthy(nil), "2026-01-01T10:00:00Z: "+m.dir)

			m.swap(issueFiles(t, ca, 11))
			m.reloadNow()
			require.NoError(t, m.Healthy(nil))
			require.NoError(t, m.Problem())

			alone := newTestFiles(t, func(o *FilesOptions) { o.RequireCA = true })
			alone.clock.SetTime(at(test.hours))
			alone.swap(invalid)
			alone.reloadNow()
			require.ErrorIs(t, alone.Healthy(nil), ErrNotReady)
			assertFileError(t, alone.Healthy(nil), alone.dir, test.file, test.is)
			assert.NoError(t, alone.Problem(), "Healthy reports it")
		})
	}
}

func TestExpiredAuthorityIsReported(t *testing.T) {
	m, ca := newTestFiles(t, nil), newTestSigner(t, epoch)
	files := issueFiles(t, ca, 0)
	short := authorityTemplate("ca", hour, epoch)
	short.Subject, short.SubjectKeyId = ca.cert.Subject, ca.cert.SubjectKeyId
	der, err := x509.CreateCertificate(rand.Reader, short, short, ca.key.Public(), ca.key)
	require.NoError(t, err)
	files[CAFile] = encodeCertificates(der)
	m.clock.SetTime(at(2))
	m.swap(files)
	m.reloadNow()
	require.ErrorIs(t, m.Healthy(nil), ErrNotReady)
	require.ErrorIs(t, m.Healthy(nil), ErrExpired)
	var of *FileError
	require.ErrorAs(t, m.Healthy(nil), &of)
	assert.Equal(t, filepath.Join(m.dir, CAFile), of.Path)
	for _, part := range []string{ca.cert.Subject.CommonName, "2025-12-31T21:00:00Z", "2026-01-01T01:00:00Z"} {
		assert.ErrorContains(t, of, part)
	}
}

func TestCertificateNearExpiryIsReported(t *testing.T) {
	m := newTestFiles(t, nil)
	m.swap(issueFiles(t, newTestSigner(t, epoch), 0))
	m.reloadNow()
	m.clock.SetTime(at(8))
	require.NoError(t, m.Problem())
	m.clock.SetTime(at(9.5))
	require.NoError(t, m.Healthy(nil))
	assertFileError(t, m.Problem(), m.dir, CertFile, nil)
	assert.ErrorContains(t, m.Problem(), "2026-01-01T10:00:00Z")
}

func TestUnreadableFileIsReported(t *testing.T) {
	m := newTestFiles(t, nil)
	require.NoError(t, os.MkdirAll(filepath.Join(m.dir, KeyFile), 0o700))
	m.reloadNow()
	require.ErrorIs(t, m.Healthy(nil), ErrNotReady)
	assertFileError(t, m.Healthy(nil), m.dir, KeyFile, syscall.EISDIR)
}

func TestInvalidFilesOptions(t *testing.T) {
	_, err := NewFiles(FilesOptions{PollInterval: -1})
	for _, option := range []string{"directory", "name", "poll interval"} {
		assert.ErrorContains(t, err, option)
	}
	messages.Golden(t, err.Error())
}
