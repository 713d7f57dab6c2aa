//go:build e2e

package certmanager

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const host = "webhook.issuing.svc"

// chain is a self-signed Issuer, a CA Certificate by it, an Issuer with that CA,
// and a serving Certificate by that.
func chain(t *testing.T, namespace string) {
	t.Helper()
	ca := &cmapi.Certificate{ObjectMeta: meta(namespace, "ca"), Spec: cmapi.CertificateSpec{
		IsCA: true, CommonName: "a CA", SecretName: "ca",
		PrivateKey: &cmapi.CertificatePrivateKey{Algorithm: cmapi.ECDSAKeyAlgorithm},
		IssuerRef:  cmmeta.IssuerReference{Name: "selfsigned"},
	}}
	serving := &cmapi.Certificate{ObjectMeta: meta(namespace, "serving"), Spec: cmapi.CertificateSpec{
		DNSNames: []string{host}, SecretName: "serving",
		PrivateKey: &cmapi.CertificatePrivateKey{Algorithm: cmapi.ECDSAKeyAlgorithm},
		IssuerRef:  cmmeta.IssuerReference{Name: "ca"},
	}}
	create(t, &corev1.Namespace{ObjectMeta: meta("", namespace)},
		&cmapi.Issuer{ObjectMeta: meta(namespace, "selfsigned"), Spec: cmapi.IssuerSpec{IssuerConfig: cmapi.IssuerConfig{SelfSigned: &cmapi.SelfSignedIssuer{}}}},
		ca,
		&cmapi.Issuer{ObjectMeta: meta(namespace, "ca"), Spec: cmapi.IssuerSpec{IssuerConfig: cmapi.IssuerConfig{CA: &cmapi.CAIssuer{SecretName: "ca"}}}},
		serving)
}

func TestACertificateIsIssuedAndItsAuthorityInjected(t *testing.T) {
	chain(t, "issuing")
	hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "issuing", Annotations: map[string]string{cmapi.WantInjectAnnotation: "issuing/serving"}},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "nothing.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "issuing", Name: "webhook"}},
		}},
	}
	create(t, hooks)
	t.Cleanup(func() { assert.NoError(t, cluster.Delete(context.WithoutCancel(t.Context()), hooks)) })

	secret := issued(t, "issuing", "serving", 1)
	injected := bundle(t, "issuing", secret["ca.crt"])

	leaf := parsed(t, secret)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(injected))
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	require.NoError(t, err)
	assert.False(t, leaf.IsCA)

	again := renew(t, "issuing", "serving")
	assert.NotEqual(t, leaf.SerialNumber, parsed(t, again).SerialNumber)
	assert.Equal(t, secret["ca.crt"], again["ca.crt"])
}

// bundle waits until a webhook configuration trusts an authority, and returns
// all that it trusts.
func bundle(t *testing.T, name string, ca []byte) []byte {
	t.Helper()
	require.NotEmpty(t, ca)
	var held []byte
	soon(t, func() bool {
		hooks := get[admissionregistrationv1.ValidatingWebhookConfiguration](t, "", name)
		held = hooks.Webhooks[0].ClientConfig.CABundle
		return bytes.Contains(held, ca)
	}, func() string { return "the cainjector does not inject the authority; there is:\n" + string(held) })
	return held
}

// parsed is the certificate of a Secret, whose key has to fit.
func parsed(t *testing.T, secret map[string][]byte) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(secret[corev1.TLSCertKey], secret[corev1.TLSPrivateKeyKey])
	require.NoError(t, err)
	return pair.Leaf
}
