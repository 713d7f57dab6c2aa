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

	"overrule.dev/overrule/webhook"
)

func TestArgumentsOfEachInstallation(t *testing.T) {
	want := map[string][]string{
		"base":                     {"--enforcement=deny", "--failure-policy=Fail", "--log-format=json"},
		"overlays/warn":            {"--enforcement=warn", "--failure-policy=Fail", "--log-format=json"},
		"overlays/static-webhooks": {"--enforcement=deny", "--failure-policy=Fail", "--log-format=json", "--manage-webhooks=false"},
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
	assert.Equal(t, map[string]int32{"webhook": 9443, "metrics": 8080, "health": 8081}, ports)

	health := intstr.FromString("health")
	assert.Equal(t, &corev1.HTTPGetAction{Path: "/healthz", Port: health}, container.LivenessProbe.HTTPGet)
	assert.Equal(t, &corev1.HTTPGetAction{Path: "/readyz", Port: health}, container.ReadinessProbe.HTTPGet)

	service := find[corev1.Service](t, objects, "Service", "overrule")
	require.Len(t, service.Spec.Ports, 1)
	assert.EqualValues(t, 443, service.Spec.Ports[0].Port)
	assert.Equal(t, intstr.FromString("webhook"), service.Spec.Ports[0].TargetPort)
}

func TestOneReplicaIsAlwaysThere(t *testing.T) {
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

func TestStaticWebhooksCallTheService(t *testing.T) {
	objects := fillIn(t, render(t, "overlays/static-webhooks"))
	validating := find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", "overrule").Webhooks
	mutating := find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", "overrule").Webhooks
	require.Len(t, validating, 1)
	require.Len(t, mutating, 1)

	assert.Equal(t, "validate.overrule.dev", validating[0].Name)
	assert.Equal(t, "mutate.overrule.dev", mutating[0].Name)
	assertCallsService(t, validating[0].ClientConfig.Service, "/validate")
	assertCallsService(t, mutating[0].ClientConfig.Service, "/mutate")
	assertExempt(t, validating[0].NamespaceSelector)
	assertExempt(t, mutating[0].NamespaceSelector)
}

func TestStaticWebhooksMutateWhatTheyValidateButDeletes(t *testing.T) {
	objects := fillIn(t, render(t, "overlays/static-webhooks"))
	validating := find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", "overrule").Webhooks[0]
	mutating := find[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration", "overrule").Webhooks[0]
	require.Len(t, mutating.Rules, len(validating.Rules))
	for i, rule := range validating.Rules {
		assert.Equal(t, []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE"}, rule.Operations)
		assert.Equal(t, []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, mutating.Rules[i].Operations)
		assert.Equal(t, rule.Rule, mutating.Rules[i].Rule)
	}
}

func TestStaticWebhooksJudgeEveryKindThatIsBuiltIn(t *testing.T) {
	objects := fillIn(t, render(t, "overlays/static-webhooks"))
	hook := find[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration", "overrule").Webhooks[0]
	want := builtinResources(t)
	for _, r := range webhook.CoreResources() {
		want[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = true
	}
	got := map[schema.GroupResource]bool{}
	for _, rule := range hook.Rules {
		cluster := slices.Equal(rule.Resources, []string{"policyprofiles"})
		assert.Equal(t, cluster, *rule.Scope == admissionregistrationv1.ClusterScope, rule.Resources)
		for _, resource := range rule.Resources {
			got[schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}] = true
		}
	}
	assert.Equal(t, want, got)
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

// fillIn puts a caBundle where the static webhook configurations ask for one.
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
