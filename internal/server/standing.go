package server

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/webhookconfig"
)

// standing reads the caBundles by which API servers verify this installation,
// from the cluster and not from a cache: it decides what is served. Webhooks
// that others added and that lead elsewhere are none of them.
func standing(client kubernetes.Interface, o options) func(context.Context) ([]certs.TrustedBundle, error) {
	api := client.AdmissionregistrationV1()
	ours := func(sort, hook string, c admissionregistrationv1.WebhookClientConfig) []certs.TrustedBundle {
		if c.Service == nil || c.Service.Namespace != o.namespace || c.Service.Name != o.service {
			return nil
		}
		return []certs.TrustedBundle{{Where: fmt.Sprintf("%s in the %s webhook configuration %s", hook, sort, configurations), CABundle: c.CABundle}}
	}
	return func(ctx context.Context) ([]certs.TrustedBundle, error) {
		var out []certs.TrustedBundle
		m, err := api.MutatingWebhookConfigurations().Get(ctx, configurations, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the mutating webhook configuration %s: %w", configurations, err)
		}
		for _, h := range m.Webhooks {
			out = append(out, ours("mutating", h.Name, h.ClientConfig)...)
		}
		v, err := api.ValidatingWebhookConfigurations().Get(ctx, configurations, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the validating webhook configuration %s: %w", configurations, err)
		}
		for _, h := range v.Webhooks {
			out = append(out, ours("validating", h.Name, h.ClientConfig)...)
		}
		return out, nil
	}
}

// successor is a registrar that learns what was published before it leads: the
// replica that led may have had other files.
type successor struct {
	*webhookconfig.Reconciler
	recall func(context.Context)
}

// Start implements manager.Runnable.
func (s *successor) Start(ctx context.Context) error {
	if s.recall != nil {
		s.recall(ctx)
	}
	return s.Reconciler.Start(ctx)
}
