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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/keyutil"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/volume"
)

// issuer is an external certificate authority.
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

// sign completes a template and signs it; the first certificate is self-signed.
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

// files returns the files of a new certificate of a template.
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

// serial returns the serial of the certificate that an address serves; 0 for
// none.
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

func (c *cluster) bundle(t *testing.T) string {
	t.Helper()
	got := c.Kubectl("get", "validatingwebhookconfiguration/overrule", "-o", "go-template={{with (index .webhooks 0).clientConfig.caBundle}}{{. | base64decode}}{{end}}")
	succeed(t, got)
	return got.Stdout
}

func TestCertificateFromFiles(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "files")
	succeed(t, g.apply(gatewayLimits))
	_, err := server.Install(t.Context(), c.Env)
	require.NoError(t, err)
	r, dir, by := newServiceProxy(t), t.TempDir(), newIssuer(t)
	require.NoError(t, c.RouteService(t.Context(), server.Namespace, server.Name, r.port()))
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	scraped := &server.Server{Metrics: loopback(port)}
	ready := func() float64 { return metric(t, scraped, "overrule_ready") }
	s := c.startUnready(t, r, "--certificates=files", "--cert-dir="+dir, "--metrics-bind-address="+scraped.Metrics)
	soon(t, func() bool {
		return strings.Contains(s.Log(), dir+"/tls.crt: no such file or directory")
	}, "the missing file is not reported")
	assert.Zero(t, serial(t, r.backend))
	soon(t, func() bool { return metric(t, scraped, "overrule_cache_ready") == 1 }, "it does not read the cluster")
	assert.Zero(t, ready(), "the cluster was read, and every call would fail: alerts go by this")
	assert.Contains(t, c.Kubectl("get", "validatingwebhookconfiguration/overrule").Stderr, "not found", "a server without a certificate gets no calls")

	volume.Mount(t, dir, by.serving(t))
	c.awaitCalled(t)
	assert.InDelta(t, 1, ready(), 0)
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
	assert.Equal(t, inPEM(by.cert), c.bundle(t))

	w := startWriters(t, g, 2)
	volume.Mount(t, dir, by.serving(t))
	soon(t, func() bool { return serial(t, r.backend) == by.issued }, "a new certificate is not served")
	w.awaitMore(t, 12)

	// The CA is changed as docs/running.md says.
	next := newIssuer(t)
	next.issued = 100
	both := inPEM(by.cert) + inPEM(next.cert)
	before, after := by.serving(t), next.serving(t)
	before["ca.crt"], after["ca.crt"] = both, both
	volume.Mount(t, dir, before)
	soon(t, func() bool { return c.bundle(t) == both }, "the second CA is not published")
	volume.Mount(t, dir, after)
	soon(t, func() bool { return serial(t, r.backend) == next.issued }, "the certificate of the second CA is not served")
	w.awaitMore(t, 12)
	after["ca.crt"] = inPEM(next.cert)
	volume.Mount(t, dir, after)
	soon(t, func() bool { return c.bundle(t) == inPEM(next.cert) }, "the first CA is still published")
	w.awaitMore(t, 12)

	cut := next.serving(t)
	cut["tls.key"] = cut["tls.key"][:90]
	volume.Mount(t, dir, cut)
	soon(t, func() bool {
		return strings.Contains(s.Log(), "failed to find any PEM data in key input")
	}, "the error is not reported")
	assert.Equal(t, next.issued-1, serial(t, r.backend), "the valid certificate is served")
	w.awaitMore(t, 12)
	w.end()
	assert.Empty(t, w.failures(), "of %d writes", w.writes.Load())
}
