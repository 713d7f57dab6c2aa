//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/keyutil"

	"overrule.dev/overrule/test/server"
)

// issuer is an authority of somebody else's.
type issuer struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issued int64
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	i.cert, i.key = i.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: t.Name()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return i
}

// sign fills in a template and signs it; the first one by itself.
func (i *issuer) sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	i.issued++
	template.SerialNumber = big.NewInt(i.issued)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	parent, by := i.cert, i.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert, key
}

// files are those of a new certificate of a template.
func (i *issuer) files(t *testing.T, template *x509.Certificate) map[string]string {
	t.Helper()
	cert, key := i.sign(t, template)
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	require.NoError(t, err)
	return map[string]string{"tls.crt": inPEM(cert), "tls.key": string(secret), "ca.crt": inPEM(i.cert)}
}

func (i *issuer) serving(t *testing.T) map[string]string {
	t.Helper()
	return i.files(t, &x509.Certificate{
		DNSNames: []string{server.Name + "." + server.Namespace + ".svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func inPEM(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// mount puts files into a folder as a kubelet does: all at once.
func mount(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	data, err := os.MkdirTemp(dir, "..data_") //nolint:usetesting // it has to be beside the link
	require.NoError(t, err)
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(data, name), []byte(content), 0o600))
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // there from the second time on
	}
	link := filepath.Join(dir, "..data_tmp")
	require.NoError(t, os.Symlink(filepath.Base(data), link))
	require.NoError(t, os.Rename(link, filepath.Join(dir, "..data")))
}

// serial is that of the certificate which an address serves; 0 for none.
func serial(t *testing.T, address string) int64 {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func bundle(t *testing.T) string {
	t.Helper()
	got := plane.Kubectl("get", "validatingwebhookconfiguration/overrule", "-o", "go-template={{(index .webhooks 0).clientConfig.caBundle | base64decode}}")
	succeed(t, got)
	return got.Stdout
}

func TestACertificateOfFiles(t *testing.T) {
	fresh(t)
	g := prepare(t, "files")
	succeed(t, g.apply(gatewayLimits))
	_, err := server.Install(t.Context(), plane)
	require.NoError(t, err)
	r, dir, by := newRelay(t), t.TempDir(), newIssuer(t)
	require.NoError(t, plane.RouteService(t.Context(), server.Namespace, server.Name, r.port()))
	s := unready(t, r, "--certificates=files", "--cert-dir="+dir)
	soon(t, func() bool {
		return strings.Contains(s.Log(), dir+"/tls.crt: not there: put certificates in PEM there")
	}, "it does not say what is missing")
	assert.Zero(t, serial(t, (*r.backends.Load())[0]))
	assert.Contains(t, plane.Kubectl("get", "validatingwebhookconfiguration/overrule").Stderr, "not found", "nobody is to be sent to a server without a certificate")

	mount(t, dir, by.serving(t))
	called(t)
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
	assert.Equal(t, inPEM(by.cert), bundle(t))

	w := write(t, g, 4)
	for round := range 3 {
		mount(t, dir, by.serving(t))
		soon(t, func() bool { return serial(t, (*r.backends.Load())[0]) == by.issued }, "a new certificate is not served")
		cut := by.serving(t)
		cut["tls.key"] = cut["tls.key"][:90]
		mount(t, dir, cut)
		soon(t, func() bool {
			return strings.Count(s.Log(), dir+"/tls.key: breaks off in the middle of a block: put all of it there") == round+1
		}, "it does not say what is wrong")
		assert.Equal(t, by.issued-1, serial(t, (*r.backends.Load())[0]), "what was good is served")
	}
	w.end()
	assert.Empty(t, w.failures(), "of %d writes", w.writes.Load())
	assert.Positive(t, w.writes.Load())
	called(t)
}
