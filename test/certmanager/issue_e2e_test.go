//go:build e2e

package certmanager

import (
	"context"
	"crypto/x509"
	"testing"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const host = "webhook.example.svc"

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

// hooks are configurations that ask for the authority of a namespace's chain,
// and are called for no write.
func hooks(name string) []client.Object {
	annotated := metav1.ObjectMeta{Name: name, Annotations: map[string]string{cmapi.WantInjectAnnotation: name + "/serving"}}
	to := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: name, Name: "webhook"}}
	none := new(admissionregistrationv1.SideEffectClassNone)
	return []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: annotated, Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "one.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: none, ClientConfig: to},
			{Name: "two.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: none, ClientConfig: to},
		}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: annotated, Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "one.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: none, ClientConfig: to},
		}},
	}
}

func unhook(t *testing.T, name string) {
	t.Helper()
	for _, configuration := range hooks(name) {
		assert.NoError(t, cluster.Delete(context.WithoutCancel(t.Context()), configuration))
	}
}

func TestACertificateIsIssuedAndItsAuthorityInjected(t *testing.T) {
	chain(t, "issuing")
	create(t, hooks("issuing")...)
	t.Cleanup(func() { unhook(t, "issuing") })

	secret := issued(t, "issuing", "serving", 1)
	leaf := parsed(t, secret)
	for _, bundle := range injected(t, "issuing", secret[cmmeta.TLSCAKey]) {
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(bundle))
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
		require.NoError(t, err)
	}
	assert.False(t, leaf.IsCA)

	again := renew(t, "issuing", "serving")
	assert.NotEqual(t, leaf.SerialNumber, parsed(t, again).SerialNumber)
	assert.Equal(t, secret[cmmeta.TLSCAKey], again[cmmeta.TLSCAKey])
}

// The cainjector adds to what is trusted, so a server may serve what the
// authority before signed until its files change.
func TestAnAuthorityThatWasReplacedStaysTrusted(t *testing.T) {
	chain(t, "replacing")
	create(t, hooks("replacing")...)
	t.Cleanup(func() { unhook(t, "replacing") })
	before := issued(t, "replacing", "serving", 1)
	injected(t, "replacing", before[cmmeta.TLSCAKey])

	renewed := renew(t, "replacing", "ca")
	require.NotEqual(t, before[cmmeta.TLSCAKey], renewed[corev1.TLSCertKey])
	after := renewAfter(t, renewed, "replacing", "serving")

	for _, bundle := range injected(t, "replacing", after[cmmeta.TLSCAKey]) {
		assert.Contains(t, string(bundle), string(before[cmmeta.TLSCAKey]))
	}
}
