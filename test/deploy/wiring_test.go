package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"overrule.dev/overrule/internal/webhookconfig"
)

func TestArgumentsOfEachInstallation(t *testing.T) {
	want := map[string][]string{
		"base":                       {"--enforcement=deny", "--failure-policy=Fail", "--log-format=json"},
		"overlays/warn":              {"--enforcement=warn", "--failure-policy=Fail", "--log-format=json"},
		"overlays/static-webhooks":   {"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--manage-webhooks=false"},
		"overlays/certificate-files": {"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--certificates=files"},
		"overlays/cert-manager":      {"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--certificates=cert-manager"},
		"overlays/refresh":           {"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--refresh"},
	}
	for _, dir := range installations {
		assert.Equal(t, want[dir], deployment(t, dir).Spec.Template.Spec.Containers[0].Args, dir)
	}
}

func TestProbesAndServiceReachTheServersPorts(t *testing.T) {
	objects := render(t, "base")
	container := deployment(t, "base").Spec.Template.Spec.Containers[0]
	ports := map[string]int32{}
	for _, port := range container.Ports {
		ports[port.Name] = port.ContainerPort
	}
	assert.Equal(t, map[string]int32{"webhook": 9443, "peers": 9444, "metrics": 8080, "health": 8081}, ports)

	health := intstr.FromString("health")
	assert.Equal(t, &corev1.HTTPGetAction{Path: "/healthz", Port: health}, container.LivenessProbe.HTTPGet)
	assert.Equal(t, &corev1.HTTPGetAction{Path: "/readyz", Port: health}, container.ReadinessProbe.HTTPGet)

	service := find[corev1.Service](t, objects, "Service", "overrule")
	require.Len(t, service.Spec.Ports, 1)
	assert.EqualValues(t, 443, service.Spec.Ports[0].Port)
	assert.Equal(t, intstr.FromString("webhook"), service.Spec.Ports[0].TargetPort)
}

// No selector matches the API server; the kubelet's probes need no rule.
func TestNetworkPolicyAllowsCallsAndScrapes(t *testing.T) {
	policy := find[networkingv1.NetworkPolicy](t, render(t, "components/network-policy"), "NetworkPolicy", "overrule")
	tcp, webhookPort, peers, metrics := corev1.ProtocolTCP, intstr.FromString("webhook"), intstr.FromString("peers"), intstr.FromString("metrics")
	assert.Equal(t, []networkingv1.NetworkPolicyIngressRule{
		{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &webhookPort}}},
		{
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &peers}},
			From:  []networkingv1.NetworkPolicyPeer{{PodSelector: deployment(t, "base").Spec.Selector}},
		},
		{
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &metrics}},
			From:  []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"overrule.dev/scrapes-metrics": "true"}}}},
		},
	}, policy.Spec.Ingress)
	assert.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes)
	assert.Empty(t, policy.Spec.Egress)

	var names []string // checked by the test above
	for _, port := range deployment(t, "base").Spec.Template.Spec.Containers[0].Ports {
		names = append(names, port.Name)
	}
	assert.Subset(t, names, []string{webhookPort.StrVal, peers.StrVal, metrics.StrVal}, "a port name that no container has allows no traffic")
}

func TestPodDisruptionBudget(t *testing.T) {
	deployed := deployment(t, "base").Spec
	assert.EqualValues(t, 2, *deployed.Replicas)
	assert.Equal(t, intstr.FromInt32(0), *deployed.Strategy.RollingUpdate.MaxUnavailable)

	budget := find[policyv1.PodDisruptionBudget](t, render(t, "base"), "PodDisruptionBudget", "overrule")
	assert.Equal(t, intstr.FromInt32(1), *budget.Spec.MinAvailable)

	var spread []string
	for _, constraint := range deployed.Template.Spec.TopologySpreadConstraints {
		assertSelects(t, constraint.LabelSelector, deployed.Template.Labels)
		spread = append(spread, constraint.TopologyKey)
	}
	assert.Equal(t, []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}, spread)
}

func TestEverySelectorMatchesThePods(t *testing.T) {
	objects := append(render(t, "base"), render(t, "components/network-policy")...)
	deployed := deployment(t, "base").Spec
	pod := deployed.Template.Labels
	assertSelects(t, deployed.Selector, pod)
	assertSelects(t, find[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget", "overrule").Spec.Selector, pod)
	assertSelects(t, &find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "overrule").Spec.PodSelector, pod)

	service := find[corev1.Service](t, objects, "Service", "overrule").Spec.Selector
	assertSelects(t, &metav1.LabelSelector{MatchLabels: service}, pod)
}

// static returns the webhooks of the static configurations.
func static(t *testing.T) (validating []admissionregistrationv1.ValidatingWebhook, mutating []admissionregistrationv1.MutatingWebhook) {
	t.Helper()
	objects := fillIn(t, render(t, "overlays/static-webhooks"))
	return find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", "overrule").Webhooks,
		find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", "overrule").Webhooks
}

func TestStaticWebhooksCallTheService(t *testing.T) {
	validating, mutating := static(t)
	require.Len(t, validating, 6)
	require.Len(t, mutating, 2)
	for _, hook := range validating {
		assertCallsService(t, hook.ClientConfig.Service, "/validate")
		assertExempt(t, hook.NamespaceSelector)
	}
	assertCallsService(t, mutating[0].ClientConfig.Service, "/mutate")
	assertExempt(t, mutating[0].NamespaceSelector)
	assertCallsService(t, mutating[1].ClientConfig.Service, "/review")
	assert.Equal(t, &metav1.LabelSelector{}, mutating[1].NamespaceSelector, "reviews are not stored, and need no exemption")
	assert.Equal(t, admissionregistrationv1.Fail, *mutating[1].FailurePolicy)
}

// They equal those that the server would write in a cluster with every built-in
// kind, in the versions that they name.
func TestStaticWebhooksMatchServer(t *testing.T) {
	validating, mutating := static(t)
	service := validating[0].ClientConfig.Service
	written := webhookconfig.Configuration{
		Name: "overrule", Namespace: service.Namespace, Service: service.Name, Port: *service.Port,
		FailurePolicy: *validating[0].FailurePolicy, CABundle: validating[0].ClientConfig.CABundle,
		PolicyResources: webhookconfig.PolicyResources{
			Policies: policies(mutating[0].Rules), Subresources: subresources(policies(mutating[0].Rules)), Services: true,
			Selectable: slices.DeleteFunc(policies(validating[0].Rules), func(r webhookconfig.Resource) bool {
				return !selectable[schema.GroupResource{Group: r.Group, Resource: r.Resource}]
			}),
		},
	}
	var wantValidating admissionregistrationv1.ValidatingWebhookConfiguration
	convert(t, written.Validating(), &wantValidating)
	var wantMutating admissionregistrationv1.MutatingWebhookConfiguration
	convert(t, written.Mutating(), &wantMutating)
	assert.Equal(t, inOneLine(wantValidating.Webhooks), inOneLine(validating))
	assert.Equal(t, wantMutating.Webhooks, mutating)
}

func TestStaticWebhooksMatchEveryBuiltinKind(t *testing.T) {
	_, mutating := static(t)
	got := map[schema.GroupResource]bool{}
	for _, r := range policies(mutating[0].Rules) {
		got[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = true
	}
	assert.Equal(t, builtinResources(t), got)
}

// policies returns the resources of rules for policy kinds.
func policies(rules []admissionregistrationv1.RuleWithOperations) []webhookconfig.Resource {
	var out []webhookconfig.Resource
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			r := webhookconfig.Resource{
				Group: rule.APIGroups[0], Version: rule.APIVersions[0], Resource: resource,
				Namespaced: *rule.Scope == admissionregistrationv1.NamespacedScope,
			}
			if r.Group != "" && !slices.Contains(webhookconfig.CoreResources(), r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// subresources returns those of policies that are evaluated.
func subresources(of []webhookconfig.Resource) []webhookconfig.Resource {
	var out []webhookconfig.Resource
	for _, r := range of {
		status, scale := r, r
		status.Resource, scale.Resource, scale.Version = r.Resource+"/status", r.Resource+"/scale", webhookconfig.AllVersions
		out = append(out, status, scale)
	}
	return out
}

func convert(t *testing.T, from, into any) {
	t.Helper()
	data, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

// inOneLine removes the whitespace in conditions, which span several lines.
func inOneLine(hooks []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
	for i := range hooks {
		for j := range hooks[i].MatchConditions {
			c := &hooks[i].MatchConditions[j]
			c.Expression = strings.Join(strings.Fields(c.Expression), "")
		}
	}
	return hooks
}

func assertSelects(t *testing.T, selector *metav1.LabelSelector, pod map[string]string) {
	t.Helper()
	selects, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	assert.False(t, selects.Empty(), "an empty selector takes every pod of the namespace")
	assert.True(t, selects.Matches(labels.Set(pod)), "%s does not select %v", selects, pod)
}

func assertCallsService(t *testing.T, called *admissionregistrationv1.ServiceReference, path string) {
	t.Helper()
	port := int32(443)
	assert.Equal(t, &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "overrule", Path: &path, Port: &port}, called)
}

func assertExempt(t *testing.T, selector *metav1.LabelSelector) {
	t.Helper()
	selects, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	assert.False(t, selects.Matches(labels.Set{corev1.LabelMetadataName: namespace}))
	assert.True(t, selects.Matches(labels.Set{corev1.LabelMetadataName: "app"}))
}

// fillIn sets a caBundle where the static webhook configurations have a
// placeholder.
func fillIn(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	filled := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		raw, err := json.Marshal(object.Object)
		require.NoError(t, err)
		filled[i] = &unstructured.Unstructured{}
		require.NoError(t, filled[i].UnmarshalJSON([]byte(strings.ReplaceAll(string(raw), `"FILL-IN"`, `"Y2E="`))))
	}
	return filled
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(content)
}
