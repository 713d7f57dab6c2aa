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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/keyutil"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
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

// mount writes files into a folder atomically, as a kubelet does.
func mount(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	data, err := os.MkdirTemp(dir, "..data_") //nolint:usetesting // it has to be beside the link
	require.NoError(t, err)
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(data, name), []byte(content), 0o600))
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // exists from the second time on
	}
	link := filepath.Join(dir, "..data_tmp")
	require.NoError(t, os.Symlink(filepath.Base(data), link))
	require.NoError(t, os.Rename(link, filepath.Join(dir, "..data")))
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
		return strings.Contains(s.Log(), dir+"/tls.crt: not found: provide certificates in PEM format")
	}, "the missing file is not reported")
	assert.Zero(t, serial(t, (*r.backends.Load())[0]))
	soon(t, func() bool { return metric(t, scraped, "overrule_cache_ready") == 1 }, "it does not read the cluster")
	assert.Zero(t, ready(), "the cluster was read, and every call would fail: alerts go by this")
	assert.Contains(t, c.Kubectl("get", "validatingwebhookconfiguration/overrule").Stderr, "not found", "a server without a certificate gets no calls")

	mount(t, dir, by.serving(t))
	c.awaitCalled(t)
	assert.InDelta(t, 1, ready(), 0)
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
	assert.Equal(t, inPEM(by.cert), c.bundle(t))

	w := startWriters(t, g, 4)
	for round := range 3 {
		mount(t, dir, by.serving(t))
		soon(t, func() bool { return serial(t, (*r.backends.Load())[0]) == by.issued }, "a new certificate is not served")
		cut := by.serving(t)
		cut["tls.key"] = cut["tls.key"][:90]
		mount(t, dir, cut)
		soon(t, func() bool {
			return strings.Count(s.Log(), dir+"/tls.key: truncated PEM block: provide the complete file") == round+1
		}, "the error is not reported")
		assert.Equal(t, by.issued-1, serial(t, (*r.backends.Load())[0]), "the valid certificate is served")
	}
	w.end()
	assert.Empty(t, w.failures(), "of %d writes", w.writes.Load())
	assert.Positive(t, w.writes.Load())
	c.awaitCalled(t)
}

const certificate = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {namespace: overrule-system, name: overrule-serving}
spec: {secretName: overrule-serving-cert, dnsNames: [overrule.overrule-system.svc], issuerRef: {name: none}}
`

// The test takes the part of cert-manager's controllers; test/certmanager runs
// the real ones.
func TestCertificateFromCertManager(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllers()) // installs cert-manager's CRDs
	g := c.prepare(t, "cert-manager")
	succeed(t, g.apply(gatewayLimits))
	_, err := server.Install(t.Context(), c.Env)
	require.NoError(t, err)
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	succeed(t, c.Kubectl("apply", "-f", filepath.Join(root, "deploy", "components", "cert-manager", "rbac.yaml")))
	r, dir, by := newServiceProxy(t), t.TempDir(), newIssuer(t)
	require.NoError(t, c.RouteService(t.Context(), server.Namespace, server.Name, r.port()))
	s := c.startUnready(t, r, "--certificates=cert-manager", "--cert-dir="+dir)
	says := func(text string) {
		t.Helper()
		soon(t, func() bool { return strings.Contains(s.Log(), text) }, "it does not say: "+text)
	}
	says("certificate overrule-system/overrule-serving: API cert-manager.io/v1 is not served: install cert-manager")

	module, err := env.ModuleFolder(t.Context(), "github.com/cert-manager/cert-manager")
	require.NoError(t, err)
	require.NoError(t, c.InstallCRDs(filepath.Join(module, "deploy", "crds")))
	says("certificate overrule-system/overrule-serving: not found: apply it")
	succeed(t, c.Apply(certificate))
	says("not Ready: it has no conditions yet; check that cert-manager runs")
	status := func(is, message string) {
		t.Helper()
		succeed(t, c.Kubectl("-n", server.Namespace, "patch", "certificate/overrule-serving", "--subresource=status", "--type=merge", "-p",
			`{"status":{"conditions":[{"type":"Ready","status":"`+is+`","reason":"Pending","message":"`+message+`"}]}}`))
	}
	status("False", "issuer none is not there")
	says("not Ready: Ready is False (Pending): issuer none is not there: check its issuer and its CertificateRequests")
	assert.Contains(t, c.Kubectl("get", "validatingwebhookconfiguration/overrule").Stderr, "not found", "there is no CA bundle yet")
	mount(t, dir, by.serving(t))
	status("True", "it is")
	says(`"msg":"certificate is issued"`)

	from := func() string {
		return c.Kubectl("get", "validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule", "-o",
			`jsonpath={.items[*].metadata.annotations.cert-manager\.io/inject-ca-from}`).Stdout
	}
	soon(t, func() bool { return from() == "overrule-system/overrule-serving overrule-system/overrule-serving" }, "the annotation for cainjector is missing")
	assert.Empty(t, c.bundle(t))
	c.inject(t, inPEM(by.cert))
	c.awaitCalled(t)
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")

	succeed(t, c.Kubectl("label", "validatingwebhookconfiguration/overrule", "app.kubernetes.io/name=other", "--overwrite"))
	soon(t, func() bool {
		return strings.Contains(c.Kubectl("get", "validatingwebhookconfiguration/overrule", "--show-labels").Stdout, "app.kubernetes.io/name=overrule")
	}, "Overrule's fields are not restored")
	assert.Equal(t, inPEM(by.cert), c.bundle(t), "fields of others stay")
}

// inject writes the caBundles as cainjector does.
func (c *cluster) inject(t *testing.T, ca string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	hooks := client.AdmissionregistrationV1()
	options := metav1.UpdateOptions{FieldManager: "cainjector"}
	soon(t, func() bool {
		v, err := hooks.ValidatingWebhookConfigurations().Get(t.Context(), server.Name, metav1.GetOptions{})
		require.NoError(t, err)
		for i := range v.Webhooks {
			v.Webhooks[i].ClientConfig.CABundle = []byte(ca)
		}
		_, failed := hooks.ValidatingWebhookConfigurations().Update(t.Context(), v, options)
		m, err := hooks.MutatingWebhookConfigurations().Get(t.Context(), server.Name, metav1.GetOptions{})
		require.NoError(t, err)
		for i := range m.Webhooks {
			m.Webhooks[i].ClientConfig.CABundle = []byte(ca)
		}
		_, too := hooks.MutatingWebhookConfigurations().Update(t.Context(), m, options)
		return failed == nil && too == nil
	}, "the server writes at the same time, repeatedly")
}
