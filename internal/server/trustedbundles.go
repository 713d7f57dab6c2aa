package server

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/certs"
)

// trustedBundles returns a function that reads the caBundles by which API servers
// verify this installation. It reads the webhook configurations from the API
// server, not from a cache: the result decides which certificate is served.
// Webhooks of other services are ignored.
func trustedBundles(client kubernetes.Interface, o options) func(context.Context) ([]certs.TrustedBundle, error) {
	api := client.AdmissionregistrationV1()
	bundleOf := func(kind, hook string, c admissionregistrationv1.WebhookClientConfig) []certs.TrustedBundle {
		if c.Service == nil || c.Service.Namespace != o.namespace || c.Service.Name != o.service {
			return nil
		}
		return []certs.TrustedBundle{{Where: fmt.Sprintf("%s in the %s webhook configuration %s", hook, kind, webhookConfigName), CABundle: c.CABundle}}
	}
	return func(ctx context.Context) ([]certs.TrustedBundle, error) {
		var out []certs.TrustedBundle
		m, err := api.MutatingWebhookConfigurations().Get(ctx, webhookConfigName, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the mutating webhook configuration %s: %w", webhookConfigName, err)
		}
		for _, h := range m.Webhooks {
			out = append(out, bundleOf("mutating", h.Name, h.ClientConfig)...)
		}
		v, err := api.ValidatingWebhookConfigurations().Get(ctx, webhookConfigName, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the validating webhook configuration %s: %w", webhookConfigName, err)
		}
		for _, h := range v.Webhooks {
			out = append(out, bundleOf("validating", h.Name, h.ClientConfig)...)
		}
		return out, nil
	}
}
