package webhookconfig

import (
	"maps"

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

// The webhooks that use the configured failurePolicy, besides versionsWebhook.
const (
	validateWebhook = "validate.overrule.dev"
	mutateWebhook   = "mutate.overrule.dev"
)

// reviewWebhook is the webhook that answers EffectivePolicyReviews. Its failurePolicy is
// always Fail.
const reviewWebhook = "review.overrule.dev"

// timeoutSeconds of a call, which is the longest time that kubectl waits for it.
const timeoutSeconds = 3

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
