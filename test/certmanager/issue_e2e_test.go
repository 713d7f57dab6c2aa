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

// chain creates a self-signed Issuer, a CA Certificate by it, an Issuer with that
// CA, and a serving Certificate by that, and returns their namespace.
func chain(t *testing.T, host string) string {
	t.Helper()
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chain-"}}
	create(t, home)
	namespace := home.Name
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
	create(t,
		&cmapi.Issuer{ObjectMeta: meta(namespace, "selfsigned"), Spec: cmapi.IssuerSpec{IssuerConfig: cmapi.IssuerConfig{SelfSigned: &cmapi.SelfSignedIssuer{}}}},
		ca,
		&cmapi.Issuer{ObjectMeta: meta(namespace, "ca"), Spec: cmapi.IssuerSpec{IssuerConfig: cmapi.IssuerConfig{CA: &cmapi.CAIssuer{SecretName: "ca"}}}},
		serving)
	return namespace
}

// webhookConfigurations returns configurations with the annotation for CA
// injection from a namespace's chain, which match no write.
func webhookConfigurations(namespace string) []client.Object {
	annotated := metav1.ObjectMeta{Name: namespace, Annotations: map[string]string{cmapi.WantInjectAnnotation: namespace + "/serving"}}
	to := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "webhook"}}
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

func deleteWebhookConfigurations(t *testing.T, name string) {
	t.Helper()
	for _, configuration := range webhookConfigurations(name) {
		assert.NoError(t, cluster.Delete(context.WithoutCancel(t.Context()), configuration))
	}
}

func TestCertificateIsIssuedAndInjected(t *testing.T) {
	namespace := chain(t, host)
	create(t, webhookConfigurations(namespace)...)
	t.Cleanup(func() { deleteWebhookConfigurations(t, namespace) })

	secret := awaitIssued(t, namespace, "serving", 1)
	leaf := parsed(t, secret)
	for _, bundle := range awaitInjected(t, namespace, secret[cmmeta.TLSCAKey]) {
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(bundle))
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
		require.NoError(t, err)
	}
	assert.False(t, leaf.IsCA)

	again := renew(t, namespace, "serving")
	assert.NotEqual(t, leaf.SerialNumber, parsed(t, again).SerialNumber)
	assert.Equal(t, secret[cmmeta.TLSCAKey], again[cmmeta.TLSCAKey])
}

// The cainjector adds to the CA bundle, so a server may use a certificate of the
// previous authority until its files change.
func TestReplacedAuthorityStaysTrusted(t *testing.T) {
	namespace := chain(t, host)
	create(t, webhookConfigurations(namespace)...)
	t.Cleanup(func() { deleteWebhookConfigurations(t, namespace) })
	before := awaitIssued(t, namespace, "serving", 1)
	awaitInjected(t, namespace, before[cmmeta.TLSCAKey])

	renewed := renew(t, namespace, "ca")
	require.NotEqual(t, before[cmmeta.TLSCAKey], renewed[corev1.TLSCertKey])
	after := renewAfter(t, renewed, namespace, "serving")

	for _, bundle := range awaitInjected(t, namespace, after[cmmeta.TLSCAKey]) {
		assert.Contains(t, string(bundle), string(before[cmmeta.TLSCAKey]))
	}
}
