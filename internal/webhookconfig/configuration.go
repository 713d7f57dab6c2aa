package webhookconfig

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Resource is a resource whose writes are judged.
type Resource struct {
	Group, Version, Resource string
	Namespaced               bool
}

// AllVersions is the Version of a Resource in all its versions.
const AllVersions = "*"

// gatewayVersion is that of Gateway API that every release but the oldest has:
// matchPolicy Equivalent brings the others.
const gatewayVersion = "v1"

// routes are the resources of routes. They carry an annotation of ours.
func routes() []Resource {
	return gatewayResources("grpcroutes", "httproutes", "tcproutes", "tlsroutes", "udproutes")
}

func gatewayResources(names ...string) []Resource {
	out := make([]Resource, len(names))
	for i, name := range names {
		out[i] = Resource{api.GatewayGroup, gatewayVersion, name, true}
	}
	return out
}

// CoreResources are those that are judged whatever policy kinds there are:
// Gateway API's, PolicyProfiles and constraints.
func CoreResources() []Resource {
	out := append(routes(), gatewayResources("gateways", "listenersets", "referencegrants")...)
	return append(out,
		Resource{api.GatewayGroup, gatewayVersion, "gatewayclasses", false},
		Resource{api.GatewayXGroup, "v1alpha1", "xlistenersets", true},
		Resource{api.Group, "v1alpha1", "policyprofiles", false},
		Resource{api.Group, "v1alpha1", "clusterpolicyconstraints", false},
		Resource{api.Group, "v1alpha1", "policyconstraints", true})
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
	// CABundle is left out if there is none.
	CABundle []byte
	// Token, if there is one, is what the paths end with.
	Token string
	// Annotations of both.
	Annotations map[string]string
	// namespaceUID is that of the Namespace that they go with, "" for none.
	namespaceUID types.UID
	PolicyResources
}

// Evaluated is what is judged beside CoreResources, as the policy kinds want it.
type PolicyResources struct {
	// Policies are the resources of the known policy kinds, and those of Gateway
	// API that are not served in the version that CoreResources name.
	Policies []Resource
	// Scales are the scale subresources of policy kinds that write a field which
	// is read.
	Scales []Resource
	// Subresources are those by which a write in another version than the one in
	// Policies stores the whole policy as that version has it.
	Subresources []Resource
	// Services tells that policies depend on Services.
	Services bool
}

// Names of the webhooks that take what they cannot judge for what the
// failurePolicy says.
const (
	validateWebhook = "validate.overrule.dev"
	mutateWebhook   = "mutate.overrule.dev"
)

// timeoutSeconds of a call. kubectl waits for it at its worst.
const timeoutSeconds = 3

// Validating returns the validating configuration.
func (c Configuration) Validating() *ac.ValidatingWebhookConfigurationApplyConfiguration {
	judged := append(CoreResources(), c.Policies...)
	hook := c.validatingWebhook(validateWebhook).
		WithRules(append(rules(judged, allOperations...), rules(c.Scales, admissionregistrationv1.Update)...)...).
		WithMatchConditions(notSystemWrite()).
		WithFailurePolicy(c.FailurePolicy)
	ofTheSystem := judged
	if c.Services {
		ofTheSystem = append(ofTheSystem, serviceResource)
	}
	return ac.ValidatingWebhookConfiguration(c.Name).WithLabels(labels()).WithAnnotations(c.annotations()).WithOwnerReferences(c.ownerReferences()...).
		WithWebhooks(hook, c.systemWrites(ofTheSystem), c.services(), c.namespaces(), c.definitions(), c.otherVersions())
}

// allOperations are those of objects that are judged.
var allOperations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete}

// validator returns an entry of the validating configuration. Its side effects
// are the Events of denials.
func (c Configuration) validatingWebhook(name string) *ac.ValidatingWebhookApplyConfiguration {
	return ac.ValidatingWebhook().
		WithName(name).
		WithClientConfig(c.clientConfig(PathValidate)).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(c.namespaceSelector()).
		WithObjectSelector(acmeta.LabelSelector()). // said, so that it is taken back from whoever narrows it
		WithSideEffects(admissionregistrationv1.SideEffectClassNoneOnDryRun).
		WithTimeoutSeconds(timeoutSeconds).
		WithAdmissionReviewVersions("v1")
}

// notBeingDeleted is the condition of what is annotated. What server-side apply
// creates may claim a deletionTimestamp that nobody's deletion gave it.
const notBeingDeleted = "request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)"

// Mutating returns the mutating configuration: it writes annotations on
// policies and routes, and so has nothing to do on a DELETE, nor with others, nor
// with what is being deleted.
func (c Configuration) Mutating() *ac.MutatingWebhookConfigurationApplyConfiguration {
	hook := ac.MutatingWebhook().
		WithName(mutateWebhook).
		WithClientConfig(c.clientConfig(PathMutate)).
		WithRules(rules(append(routes(), c.Policies...), admissionregistrationv1.Create, admissionregistrationv1.Update)...).
		WithMatchConditions(condition("not-being-deleted", notBeingDeleted)).
		WithFailurePolicy(c.FailurePolicy).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(c.namespaceSelector()).
		WithObjectSelector(acmeta.LabelSelector()). // said, so that it is taken back from whoever narrows it
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(timeoutSeconds).
		WithReinvocationPolicy(admissionregistrationv1.IfNeededReinvocationPolicy).
		WithAdmissionReviewVersions("v1")
	return ac.MutatingWebhookConfiguration(c.Name).WithLabels(labels()).WithAnnotations(c.annotations()).WithOwnerReferences(c.ownerReferences()...).
		WithWebhooks(hook)
}

func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "overrule", "app.kubernetes.io/managed-by": "overrule"}
}

func (c Configuration) annotations() map[string]string {
	out := map[string]string{annotationInstallation: c.installation()}
	maps.Copy(out, c.Annotations)
	return out
}

// owner is what the configurations go with.
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

// selector leaves out the server's own namespace, so that it can always be
// installed and mended.
func (c Configuration) namespaceSelector() *acmeta.LabelSelectorApplyConfiguration {
	return acmeta.LabelSelector().WithMatchExpressions(acmeta.LabelSelectorRequirement().
		WithKey("kubernetes.io/metadata.name").
		WithOperator(metav1.LabelSelectorOpNotIn).
		WithValues(c.Namespace))
}

// rules returns one rule for each group, version and scope, sorted.
func rules(resources []Resource, operations ...admissionregistrationv1.OperationType) []*ac.RuleWithOperationsApplyConfiguration {
	resources = slices.Clone(resources) // of which other rules are made, too
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
