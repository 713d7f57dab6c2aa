package helm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bundle is a value for a caBundle.
const bundle = "Y2E="

// clientCAValues require client certificates of the authorities in the ConfigMap
// that the component client-ca names.
var clientCAValues = values{"clientCA.configMap": "overrule-client-ca"}

var static = values{"staticWebhooks.enabled": true, "staticWebhooks.caBundle": bundle}

// helmLabels and helmAnnotations are what the chart adds to kustomize's objects.
// Nothing else may differ.
var (
	helmLabels      = []string{"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"}
	helmAnnotations = map[string][]string{"CustomResourceDefinition": {"helm.sh/resource-policy"}}
)

func TestChartMatchesKustomize(t *testing.T) {
	for name, c := range map[string]struct {
		values     values
		components []string
	}{
		"defaults":                        {},
		"which only warns":                {values{"enforcement": "warn"}, []string{"warn"}},
		"with monitoring":                 {values{"monitoring.enabled": true}, []string{"monitoring"}},
		"with a network policy":           {values{"networkPolicy.enabled": true}, []string{"network-policy"}},
		"with refresh":                    {values{"refresh.enabled": true}, []string{"refresh"}},
		"with static webhooks":            {static, []string{"static-webhooks"}},
		"with a certificate in files":     {values{"certificates.mode": "files"}, []string{"certificate-files"}},
		"with one of cert-manager":        {values{"certificates.mode": "cert-manager"}, []string{"cert-manager"}},
		"with callers who show their own": {clientCAValues, []string{"client-ca"}},
		"with a priority":                 {values{"priorityClass.create": true}, []string{"priority-class"}},
		"with all of it together": {
			static.with(clientCAValues).with(values{"enforcement": "warn", "networkPolicy.enabled": true, "certificates.mode": "cert-manager", "priorityClass.create": true, "refresh.enabled": true}),
			[]string{"warn", "network-policy", "static-webhooks", "cert-manager", "client-ca", "priority-class", "refresh"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := kustomized(t, c.components...)
			got := rendered(t, c.values.with(values{"createNamespace": true}))
			for _, o := range got {
				withoutHelm(t, o)
			}
			assert.Equal(t, want, got)
			delete(want, id{kind: "Namespace", name: namespace})
			assert.Len(t, rendered(t, c.values), len(want), "all but the Namespace, unless that is asked for")
		})
	}
}

// withoutHelm removes what Helm adds, and fails if it is missing.
func withoutHelm(t *testing.T, object map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: object}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	for _, label := range helmLabels {
		require.NotEmpty(t, labels[label], "label %s of %s %s", label, u.GetKind(), u.GetName())
		delete(labels, label)
	}
	for _, annotation := range helmAnnotations[u.GetKind()] {
		require.NotEmpty(t, annotations[annotation], "annotation %s of %s %s", annotation, u.GetKind(), u.GetName())
		delete(annotations, annotation)
	}
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
}

func TestChartLint(t *testing.T) {
	for name, v := range map[string]values{
		"defaults":        {},
		"static webhooks": static,
		"cert-manager":    {"certificates.mode": "cert-manager", "certificates.issuerRef": map[string]any{"name": "ours"}},
		"files":           clientCAValues.with(values{"certificates.mode": "files", "clientCA.subjects": []any{"kube-apiserver"}}),
		"everything else": {"createNamespace": true, "networkPolicy.enabled": true, "replicas": 1, "uninstallHook.enabled": false, "priorityClass.create": true, "refresh.enabled": true},
	} {
		t.Run(name, func(t *testing.T) {
			lint := action.NewLint()
			lint.Strict, lint.Namespace = true, namespace
			result := lint.Run([]string{chartDir}, v.nested())
			assert.Equal(t, 1, result.TotalChartsLinted)
			assert.Empty(t, result.Errors)
		})
	}
}

// All objects are in the namespace of the release, and refer to it.
func TestReleaseNamespace(t *testing.T) {
	r, err := template(t, "gateway-guard", static.with(values{"networkPolicy.enabled": true, "createNamespace": true, "certificates.mode": "cert-manager"}))
	require.NoError(t, err)
	assert.NotContains(t, r.Manifest, namespace)
	assert.NotContains(t, r.Info.Notes, namespace)
	for key := range parse(t, r.Manifest) {
		assert.Contains(t, []string{"", "gateway-guard"}, key.namespace, key)
	}
}

// Users who apply the output of "helm template" would run the Job at once.
func TestTemplateHasNoUninstallHook(t *testing.T) {
	r, err := template(t, namespace, values{"uninstallHook.enabled": true})
	require.NoError(t, err)
	assert.Empty(t, r.Hooks)
	assert.NotContains(t, r.Manifest, "uninstall-webhooks")
}

func TestNotes(t *testing.T) {
	const left = "kubectl delete --ignore-not-found clusterrolebinding overrule-webhooks"
	const fill = "--reuse-values --set staticWebhooks.caBundle="
	for name, c := range map[string]struct {
		values       values
		says, saysNo []string
	}{
		"defaults":              {nil, []string{"start with enforcement=warn", "failurePolicy=Fail", "rollout status"}, []string{left, fill}},
		"warning":               {values{"enforcement": "warn", "failurePolicy": "Ignore"}, nil, []string{"start with", "are rejected"}},
		"without the hook":      {values{"uninstallHook.enabled": false}, []string{left}, nil},
		"static, no bundle yet": {values{"staticWebhooks.enabled": true}, []string{fill, "No write is evaluated yet"}, []string{left}},
		"static, of cert-manager": {
			values{"staticWebhooks.enabled": true, "certificates.mode": "cert-manager", "certificates.secretName": "mine"},
			[]string{fill, "wait --for=create --timeout=2m secret/mine", `get secret mine -o jsonpath='{.data.ca\.crt}'`, "No replica is ready until the Secret mine contains a certificate"},
			[]string{"overrule-ca"},
		},
		"callers with a certificate": {clientCAValues, []string{"Callers need a certificate"}, []string{"No replica is ready"}},
		"static, with its trust":     {static.with(values{"uninstallHook.enabled": false}), nil, []string{fill, left, "No write is evaluated yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := template(t, namespace, c.values)
			require.NoError(t, err)
			notes := strings.Join(strings.Fields(r.Info.Notes), " ")
			for _, text := range c.says {
				assert.Contains(t, notes, text)
			}
			for _, text := range c.saysNo {
				assert.NotContains(t, notes, text)
			}
		})
	}
}
