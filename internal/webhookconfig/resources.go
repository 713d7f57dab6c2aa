package webhookconfig

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Resource is a resource whose writes are evaluated.
type Resource struct {
	Group, Version, Resource string
	Namespaced               bool
}

// AllVersions is the Version of a Resource in all its versions.
const AllVersions = "*"

// PolicyResources are the resources that are evaluated besides CoreResources, depending
// on the policy kinds.
type PolicyResources struct {
	// Policies are the resources of the known policy kinds, and those of Gateway API
	// that are not served in the version that CoreResources name.
	Policies []Resource
	// Selectable are the resources that policies select by label.
	Selectable []Resource
	// Scales are the scale subresources of policy kinds that write a field which is
	// read.
	Scales []Resource
	// Subresources are those by which a write in another version than the one in
	// Policies stores the whole policy as that version has it.
	Subresources []Resource
	// Services is set if policies depend on Services.
	Services bool
}

// gatewayVersion is the version of Gateway API that all releases but the oldest have:
// matchPolicy Equivalent includes the others.
const gatewayVersion = "v1"

// CoreResources are the resources that are evaluated whatever policy kinds exist: those
// of Gateway API, PolicyProfiles and constraints.
func CoreResources() []Resource {
	out := append(routes(), gatewayResources("gateways", "listenersets", "referencegrants")...)
	return append(out,
		Resource{api.GatewayGroup, gatewayVersion, "gatewayclasses", false},
		Resource{api.GatewayXGroup, "v1alpha1", "xlistenersets", true},
		Resource{api.Group, "v1alpha1", "policyprofiles", false},
		Resource{api.Group, "v1alpha1", "clusterpolicyconstraints", false},
		Resource{api.Group, "v1alpha1", "policyconstraints", true})
}

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

// serviceResource is evaluated if policies depend on Services, and so is serviceStatus:
// a write of the status of a Service, a Namespace or a CustomResourceDefinition stores
// labels and owners too. That of a custom resource stores its status alone.
var (
	serviceResource = Resource{"", "v1", "services", true}
	serviceStatus   = Resource{"", "v1", "services/status", true}
)

// namespaceResources are evaluated for their deletion and for labels, which their
// subresources write too.
var namespaceResources = []Resource{
	{"", "v1", "namespaces", false}, {"", "v1", "namespaces/finalize", false}, {"", "v1", "namespaces/status", false},
}

// definitionResources are evaluated if a kind of their group is known.
var definitionResources = []Resource{
	{"apiextensions.k8s.io", "v1", "customresourcedefinitions", false},
	{"apiextensions.k8s.io", "v1", "customresourcedefinitions/status", false},
}

// Operations on objects that are evaluated: on all objects, and on those that exist.
var (
	existing      = []admissionregistrationv1.OperationType{admissionregistrationv1.Update, admissionregistrationv1.Delete}
	allOperations = append([]admissionregistrationv1.OperationType{admissionregistrationv1.Create}, existing...)
)

// rules returns one rule for each group, version and scope, sorted.
func rules(resources []Resource, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	resources = slices.Clone(resources) // the caller's order stays
	slices.SortFunc(resources, func(a, b Resource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version),
			strings.Compare(string(a.scope()), string(b.scope())), strings.Compare(a.Resource, b.Resource))
	})
	var out []admissionregistrationv1.RuleWithOperations
	for i, r := range slices.Compact(resources) {
		if i == 0 || !sameRule(out[len(out)-1].Rule, r) {
			out = append(out, admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Scope: new(r.scope()),
			}})
		}
		last := &out[len(out)-1]
		last.Resources = append(last.Resources, r.Resource)
	}
	return out
}

func sameRule(a admissionregistrationv1.Rule, r Resource) bool {
	return a.APIGroups[0] == r.Group && a.APIVersions[0] == r.Version && *a.Scope == r.scope()
}

func (r Resource) scope() admissionregistrationv1.ScopeType {
	if r.Namespaced {
		return admissionregistrationv1.NamespacedScope
	}
	return admissionregistrationv1.ClusterScope
}
