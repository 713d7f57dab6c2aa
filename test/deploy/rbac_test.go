package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/policykind"
)

var readVerbs = []string{"get", "list", "watch"}

func TestNoRuleHasAWildcard(t *testing.T) {
	for _, dir := range installations {
		for name, rules := range rulesByRole(t, render(t, dir)) {
			for _, rule := range rules {
				everything := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
				assert.NotContainsf(t, everything, "*", "%s: %s", dir, name)
			}
		}
	}
}

// otherClusterRules are the cluster-wide rights that are neither read rights nor
// for webhook configurations, which are limited by name.
var otherClusterRules = map[string][]rbacv1.PolicyRule{
	"overrule-profiles": {{
		APIGroups: []string{"overrule.dev"}, Verbs: []string{"patch"},
		Resources: []string{"clusterpolicyconstraints/status", "policyconstraints/status", "policyprofiles/status"},
	}},
	"overrule-evaluation": {
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{
			APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
			ResourceNames: []string{"overrule"}, Verbs: []string{"get"},
		},
	},
}

// reviewers is the role of users who may ask for reviews. The server does not have it.
const reviewers = "overrule-reviews"

func TestUsersWithRoleViewMayAskForReviews(t *testing.T) {
	role := find[rbacv1.ClusterRole](t, render(t, "base"), "ClusterRole", reviewers)
	assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{"overrule.dev"}, Resources: []string{"effectivepolicyreviews"}, Verbs: []string{"create"}}}, role.Rules)
	assert.Equal(t, "true", role.Labels["rbac.authorization.k8s.io/aggregate-to-view"])
}

func TestClusterRoleRights(t *testing.T) {
	for _, role := range ofKind[rbacv1.ClusterRole](t, render(t, "base"), "ClusterRole") {
		if role.Name == reviewers {
			continue
		}
		if want, ok := otherClusterRules[role.Name]; ok {
			assert.Equal(t, want, role.Rules, role.Name)
			continue
		}
		for _, rule := range role.Rules {
			assert.NotContains(t, rule.Resources, "secrets", role.Name)
			if !slices.Equal(rule.APIGroups, []string{"admissionregistration.k8s.io"}) {
				assert.Equalf(t, readVerbs, rule.Verbs, "%s: %v", role.Name, rule.Resources)
				continue
			}
			if !slices.Equal(rule.Verbs, []string{"create"}) { // create cannot be limited by name
				assert.Equal(t, []string{"overrule"}, rule.ResourceNames, role.Name)
			}
		}
	}
}

func TestRightsInItsNamespaceAreLimitedByName(t *testing.T) {
	named := map[string][]string{"secrets": {"overrule-ca", "overrule-path"}, "leases": {"overrule"}}
	role := find[rbacv1.Role](t, render(t, "base"), "Role", "overrule")
	assert.Equal(t, namespace, role.Namespace)
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			if resource == "events" || slices.Equal(rule.Verbs, []string{"create"}) {
				continue
			}
			require.NotEmpty(t, rule.ResourceNames, resource)
			assert.Subset(t, named[resource], rule.ResourceNames, resource)
		}
	}
}

func TestPolicyKindsAreReadThroughAnAggregatedRole(t *testing.T) {
	objects := render(t, "base")
	reader := find[rbacv1.ClusterRole](t, objects, "ClusterRole", "overrule-reader")
	assert.Nil(t, reader.Rules, "an apply with rules would remove the aggregated ones")
	require.NotNil(t, reader.AggregationRule)
	require.Len(t, reader.AggregationRule.ClusterRoleSelectors, 1)
	selector, err := metav1.LabelSelectorAsSelector(&reader.AggregationRule.ClusterRoleSelectors[0])
	require.NoError(t, err)

	gathered := map[schema.GroupResource]bool{}
	for _, role := range ofKind[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		if !selector.Matches(labels.Set(role.Labels)) {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				gathered[schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}] = true
			}
		}
	}
	want := builtinResources(t)
	maps.Copy(want, selectable)
	assert.Equal(t, want, gathered)
}

// selectable are the resources whose objects are read without being policies, with the built-in kinds.
var selectable = map[schema.GroupResource]bool{
	{Group: "agentgateway.dev", Resource: "agentgatewaybackends"}:      true,
	{Group: "gateway.kgateway.dev", Resource: "backends"}:              true,
	{Group: "inference.networking.k8s.io", Resource: "inferencepools"}: true,
	{Group: "policy.linkerd.io", Resource: "servers"}:                  true,
}

func TestRefreshRights(t *testing.T) {
	objects := render(t, "overlays/refresh")
	var mine []string
	for _, b := range ofKind[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		account := rbacv1.Subject{Kind: "ServiceAccount", Name: "overrule-refresher", Namespace: namespace}
		if slices.Contains(b.Subjects, account) {
			mine = append(mine, b.RoleRef.Name)
			assert.Len(t, b.Subjects, 1, b.Name)
		}
	}
	assert.ElementsMatch(t, []string{"overrule-refresher", "overrule-refresher-kinds"}, mine)

	gw := "gateway.networking.k8s.io"
	assert.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{gw}, Resources: []string{"grpcroutes", "httproutes", "tcproutes", "tlsroutes", "udproutes"}, Verbs: []string{"patch"}},
		{APIGroups: []string{gw}, Resources: []string{"gatewayclasses", "gateways", "listenersets"}, Verbs: []string{"get"}},
		{APIGroups: []string{gw}, Resources: []string{"gatewayclasses/status", "gateways/status", "listenersets/status"}, Verbs: []string{"patch"}},
	}, find[rbacv1.ClusterRole](t, objects, "ClusterRole", "overrule-refresher").Rules)
	kinds := find[rbacv1.ClusterRole](t, objects, "ClusterRole", "overrule-refresher-kinds")
	assert.Nil(t, kinds.Rules)
	require.NotNil(t, kinds.AggregationRule)
	selector, err := metav1.LabelSelectorAsSelector(&kinds.AggregationRule.ClusterRoleSelectors[0])
	require.NoError(t, err)
	gathered := map[schema.GroupResource]bool{}
	for _, role := range ofKind[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		if !selector.Matches(labels.Set(role.Labels)) {
			continue
		}
		for _, rule := range role.Rules {
			assert.Equal(t, []string{"patch"}, rule.Verbs, role.Name)
			for _, resource := range rule.Resources {
				gathered[schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}] = true
			}
		}
	}
	assert.Equal(t, builtinResources(t), gathered)
}

func TestServerImpersonatesRefresherOnly(t *testing.T) {
	objects := render(t, "overlays/refresh")
	role := find[rbacv1.Role](t, objects, "Role", "overrule-refresh")
	assert.Equal(t, namespace, role.Namespace)
	assert.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"overrule-refresher"}, Verbs: []string{"impersonate"},
	}}, role.Rules)
	for _, dir := range installations {
		for name, rules := range rulesByRole(t, render(t, dir)) {
			for _, rule := range rules {
				assert.Falsef(t, name != "Role overrule-refresh" && slices.Contains(rule.Verbs, "impersonate"), "%s: %s", dir, name)
			}
		}
	}
}

func TestGatewayAPIIsReadable(t *testing.T) {
	role := find[rbacv1.ClusterRole](t, render(t, "base"), "ClusterRole", "overrule")
	var read []string
	for _, rule := range role.Rules {
		read = append(read, rule.Resources...)
	}
	for _, source := range cache.Sources[:len(cache.Sources)-1] { // the last source is the policy kinds
		assert.Contains(t, read, source)
	}
	assert.Len(t, read, len(cache.Sources)-1)
}

// builtinResources returns the resources of the built-in policy kinds.
func builtinResources(t *testing.T) map[schema.GroupResource]bool {
	t.Helper()
	kinds := policykind.BuiltinKinds()
	out := map[schema.GroupResource]bool{}
	for _, k := range kinds {
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: k.Group, Kind: k.Kind})
		if strings.HasSuffix(k.Kind, "Parameters") { // the kind is a plural already
			plural.Resource = strings.ToLower(k.Kind)
		}
		out[plural.GroupResource()] = true
	}
	return out
}

func TestEveryRoleIsBoundToTheServerAlone(t *testing.T) {
	server := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "overrule", Namespace: namespace}}
	for _, dir := range installations {
		objects := render(t, dir)
		for _, binding := range ofKind[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
			if !strings.HasPrefix(binding.Name, "overrule-refresher") { // the user that the server impersonates
				assert.Equal(t, server, binding.Subjects, binding.Name)
			}
			find[rbacv1.ClusterRole](t, objects, "ClusterRole", binding.RoleRef.Name)
		}
		for _, binding := range ofKind[rbacv1.RoleBinding](t, objects, "RoleBinding") {
			assert.Equal(t, server, binding.Subjects, binding.Name)
			assert.Equal(t, namespace, binding.Namespace, binding.Name)
			find[rbacv1.Role](t, objects, "Role", binding.RoleRef.Name)
		}
	}
}

func TestStaticWebhooksRemoveWriteRights(t *testing.T) {
	for name, rules := range rulesByRole(t, render(t, "overlays/static-webhooks")) {
		for _, rule := range rules {
			if slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") {
				assert.Equal(t, []string{"get"}, rule.Verbs, name)
			}
		}
	}
}

func rulesByRole(t *testing.T, objects []*unstructured.Unstructured) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range ofKind[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		rules["ClusterRole "+role.Name] = role.Rules
	}
	for _, role := range ofKind[rbacv1.Role](t, objects, "Role") {
		rules["Role "+role.Name] = role.Rules
	}
	require.NotEmpty(t, rules)
	return rules
}

// A busy tenant cannot delay the server's SubjectAccessReviews.
func TestFlowSchemaForReviews(t *testing.T) {
	got := find[flowcontrolv1.FlowSchema](t, render(t, "base"), "FlowSchema", "overrule").Spec
	assert.Equal(t, flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "workload-high"},
		MatchingPrecedence:         1000, // before that of all ServiceAccounts, 9000
		DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects: []flowcontrolv1.Subject{{
				Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Name: "overrule", Namespace: namespace},
			}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{
				{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, ClusterScope: true},
				{Verbs: []string{"create"}, APIGroups: []string{"overrule.dev"}, Resources: []string{"effectivepolicyreviews"}, Namespaces: []string{"overrule-system"}},
			},
		}},
	}, got)
}
