package webhook

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Resource is a resource whose writes are judged.
type Resource struct {
	Group, Version, Resource string
	Namespaced               bool
}

// CoreResources are those that are judged whatever policy kinds there are:
// Gateway API's, in the version that every release but the oldest has of them
// (matchPolicy Equivalent brings the others), and PolicyProfiles.
func CoreResources() []Resource {
	var out []Resource
	for _, resource := range []string{
		"gateways", "grpcroutes", "httproutes", "listenersets", "referencegrants", "tcproutes", "tlsroutes", "udproutes",
	} {
		out = append(out, Resource{api.GatewayGroup, "v1", resource, true})
	}
	return append(out, Resource{api.Group, "v1alpha1", "policyprofiles", false})
}

// Configuration is what the webhook configurations are made of.
type Configuration struct {
	// Name of both configurations.
	Name string
	// Namespace and Service that lead to the server, and its Port. The
	// namespace is exempt: a policy in it takes no part.
	Namespace, Service string
	Port               int32
	FailurePolicy      admissionregistrationv1.FailurePolicyType
	CABundle           []byte
	// Policies are the resources of the known policy kinds, and those of Gateway
	// API that are not served in the version that CoreResources name.
	Policies []Resource
}

// timeoutSeconds of a call. kubectl waits for it at its worst.
const timeoutSeconds = 3

// Validating returns the validating configuration.
func (c Configuration) Validating() *ac.ValidatingWebhookConfigurationApplyConfiguration {
	hook := ac.ValidatingWebhook().
		WithName("validate.overrule.dev").
		WithClientConfig(c.client(PathValidate)).
		WithRules(c.rules(admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)...).
		WithFailurePolicy(c.FailurePolicy).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(c.selector()).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(timeoutSeconds).
		WithAdmissionReviewVersions("v1")
	return ac.ValidatingWebhookConfiguration(c.Name).WithLabels(labels()).WithWebhooks(hook)
}

// Mutating returns the mutating configuration: it writes annotations on
// policies and routes, and so has nothing to do on a DELETE.
func (c Configuration) Mutating() *ac.MutatingWebhookConfigurationApplyConfiguration {
	hook := ac.MutatingWebhook().
		WithName("mutate.overrule.dev").
		WithClientConfig(c.client(PathMutate)).
		WithRules(c.rules(admissionregistrationv1.Create, admissionregistrationv1.Update)...).
		WithFailurePolicy(c.FailurePolicy).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(c.selector()).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(timeoutSeconds).
		WithReinvocationPolicy(admissionregistrationv1.IfNeededReinvocationPolicy).
		WithAdmissionReviewVersions("v1")
	return ac.MutatingWebhookConfiguration(c.Name).WithLabels(labels()).WithWebhooks(hook)
}

func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "overrule", "app.kubernetes.io/managed-by": "overrule"}
}

func (c Configuration) client(path string) *ac.WebhookClientConfigApplyConfiguration {
	service := ac.ServiceReference().WithNamespace(c.Namespace).WithName(c.Service).WithPath(path).WithPort(c.Port)
	return ac.WebhookClientConfig().WithService(service).WithCABundle(c.CABundle...)
}

// selector leaves out the server's own namespace, so that it can always be
// installed and mended.
func (c Configuration) selector() *acmeta.LabelSelectorApplyConfiguration {
	return acmeta.LabelSelector().WithMatchExpressions(acmeta.LabelSelectorRequirement().
		WithKey("kubernetes.io/metadata.name").
		WithOperator(metav1.LabelSelectorOpNotIn).
		WithValues(c.Namespace))
}

// rules returns one rule for each group, version and scope, sorted.
func (c Configuration) rules(operations ...admissionregistrationv1.OperationType) []*ac.RuleWithOperationsApplyConfiguration {
	resources := append(CoreResources(), c.Policies...)
	slices.SortFunc(resources, func(a, b Resource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version),
			strings.Compare(string(a.scope()), string(b.scope())), strings.Compare(a.Resource, b.Resource))
	})
	var out []*ac.RuleWithOperationsApplyConfiguration
	for i, r := range slices.Compact(resources) {
		if i == 0 || !sameRule(out[len(out)-1], r) {
			out = append(out, ac.RuleWithOperations().WithOperations(operations...).
				WithAPIGroups(r.Group).WithAPIVersions(r.Version).WithScope(r.scope()))
		}
		out[len(out)-1].WithResources(r.Resource)
	}
	return out
}

func sameRule(a *ac.RuleWithOperationsApplyConfiguration, r Resource) bool {
	return a.APIGroups[0] == r.Group && a.APIVersions[0] == r.Version && *a.Scope == r.scope()
}

func (r Resource) scope() admissionregistrationv1.ScopeType {
	if r.Namespaced {
		return admissionregistrationv1.NamespacedScope
	}
	return admissionregistrationv1.ClusterScope
}
