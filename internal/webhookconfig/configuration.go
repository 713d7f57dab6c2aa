package webhookconfig

import (
	"cmp"
	"maps"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

// Configuration has the parameters of the webhook configurations.
type Configuration struct {
	// Name of both configurations.
	Name string
	// Namespace, Service and Port of the server. The namespace is exempt: policies in it
	// take no part.
	Namespace, Service string
	Port               int32
	FailurePolicy      admissionregistrationv1.FailurePolicyType
	// Timeout is how long the API server waits for a response, in whole seconds from
	// MinTimeout to MaxTimeout; 0 means DefaultTimeout.
	Timeout time.Duration
	// CABundle is left out if it is empty.
	CABundle []byte
	// Token, if set, is the last element of the paths.
	Token string
	// Annotations of both configurations.
	Annotations map[string]string
	// namespaceUID is the uid of the Namespace that owns the configurations, "" for
	// none.
	namespaceUID types.UID
	PolicyResources
}

// annotationInstallation names the installation that owns a configuration, as
// NAMESPACE/SERVICE.
const annotationInstallation = "overrule.dev/installation"

// installation returns the name of the installation of a configuration.
func (c Configuration) installation() string { return c.Namespace + "/" + c.Service }

// The webhooks that use the configured failurePolicy, besides versionsWebhook.
const (
	validateWebhook = "validate.overrule.dev"
	mutateWebhook   = "mutate.overrule.dev"
)

// reviewWebhook is the webhook that answers EffectivePolicyReviews. Its failurePolicy is
// always Fail.
const reviewWebhook = "review.overrule.dev"

// Timeouts of the webhooks.
const (
	// DefaultTimeout is enough for the largest writes that are evaluated (docs/performance.md)
	// and for what else takes time in a call (webhook: responseReserve). Longer, it would
	// delay every write while no replica answers, and the leader's successor after a crash
	// (coordination.LeaseDuration).
	DefaultTimeout = 3 * time.Second
	// MinTimeout and MaxTimeout are the limits of the API server.
	MinTimeout = time.Second
	MaxTimeout = 30 * time.Second
)

// timeoutSeconds is Timeout as it stands in the configurations.
func (c Configuration) timeoutSeconds() int32 {
	return int32(cmp.Or(c.Timeout, DefaultTimeout) / time.Second) //nolint:gosec // at most MaxTimeout
}

func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "overrule", "app.kubernetes.io/managed-by": "overrule"}
}

func (c Configuration) annotations() map[string]string {
	out := map[string]string{annotationInstallation: c.installation()}
	maps.Copy(out, c.Annotations)
	return out
}

// ownerReferences returns the reference to the Namespace that owns the configurations.
func (c Configuration) ownerReferences() []*acmeta.OwnerReferenceApplyConfiguration {
	if c.namespaceUID == "" {
		return nil
	}
	return []*acmeta.OwnerReferenceApplyConfiguration{
		acmeta.OwnerReference().WithAPIVersion("v1").WithKind("Namespace").WithName(c.Namespace).WithUID(c.namespaceUID),
	}
}

func (c Configuration) clientConfig(path string) *ac.WebhookClientConfigApplyConfiguration {
	if c.Token != "" {
		path += "/" + c.Token
	}
	service := ac.ServiceReference().WithNamespace(c.Namespace).WithName(c.Service).WithPath(path).WithPort(c.Port)
	return ac.WebhookClientConfig().WithService(service).WithCABundle(c.CABundle...)
}

// namespaceSelector excludes the server's own namespace, so that it can always be
// installed and repaired.
func (c Configuration) namespaceSelector() *acmeta.LabelSelectorApplyConfiguration {
	return acmeta.LabelSelector().WithMatchExpressions(acmeta.LabelSelectorRequirement().
		WithKey("kubernetes.io/metadata.name").
		WithOperator(metav1.LabelSelectorOpNotIn).
		WithValues(c.Namespace))
}
