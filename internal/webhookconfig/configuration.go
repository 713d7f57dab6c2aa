package webhookconfig

import (
	"cmp"
	"maps"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// The webhooks of most writes.
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

// configuration returns the configuration of one kind.
func (c Configuration) configuration(kind string, webhooks ...webhook) *WebhookConfig {
	out := &WebhookConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{
			Name:        c.Name,
			Labels:      map[string]string{"app.kubernetes.io/name": "overrule", "app.kubernetes.io/managed-by": "overrule"},
			Annotations: map[string]string{annotationInstallation: c.installation()},
		},
		Webhooks: webhooks,
	}
	maps.Copy(out.Annotations, c.Annotations)
	if c.namespaceUID != "" {
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: c.Namespace, UID: c.namespaceUID}}
	}
	return out
}

// webhook returns what the webhooks have in common. Each sets its side effects, and what
// differs.
func (c Configuration) webhook(name, path string, rules []admissionregistrationv1.RuleWithOperations, conditions ...admissionregistrationv1.MatchCondition) webhook {
	if c.Token != "" {
		path += "/" + c.Token
	}
	return webhook{
		Name: name,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service:  &admissionregistrationv1.ServiceReference{Namespace: c.Namespace, Name: c.Service, Path: &path, Port: &c.Port},
			CABundle: c.CABundle,
		},
		Rules:           rules,
		MatchConditions: conditions,
		FailurePolicy:   &c.FailurePolicy,
		MatchPolicy:     new(admissionregistrationv1.Equivalent),
		// It excludes the server's own namespace, so that it can always be installed and
		// repaired.
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{c.Namespace}},
		}},
		ObjectSelector:          &metav1.LabelSelector{},                                     // explicit, so that a narrower one is reverted
		TimeoutSeconds:          new(int32(cmp.Or(c.Timeout, DefaultTimeout) / time.Second)), //nolint:gosec // at most MaxTimeout
		AdmissionReviewVersions: []string{"v1"},
	}
}
