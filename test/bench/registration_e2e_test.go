//go:build e2e

package bench_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// registration registers a server for the writes of some namespaces.
type registration struct {
	name               string // of both configurations
	namespace, service string
	port               int32
	ca                 []byte
	// only are the namespaces; if empty, all except those in except.
	only, except []string
}

// register writes the configurations of deploy/components/static-webhooks, so
// that all servers are called for the same writes in the same way. Only the
// Service and the namespaces differ.
func (c *cluster) register(tb testing.TB, r registration) {
	tb.Helper()
	validating, mutating := r.configurations(tb)
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(tb, err)
	hooks := client.AdmissionregistrationV1()
	_, err = hooks.MutatingWebhookConfigurations().Create(tb.Context(), mutating, metav1.CreateOptions{})
	require.NoError(tb, err)
	_, err = hooks.ValidatingWebhookConfigurations().Create(tb.Context(), validating, metav1.CreateOptions{})
	require.NoError(tb, err)
}

func (r registration) configurations(tb testing.TB) (*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfiguration) {
	tb.Helper()
	root, err := env.Repository(tb.Context())
	require.NoError(tb, err)
	text, err := os.ReadFile(filepath.Join(root, "deploy", "components", "static-webhooks", "webhooks.yaml"))
	require.NoError(tb, err)
	filled := strings.ReplaceAll(string(text), "FILL-IN", base64.StdEncoding.EncodeToString(r.ca))
	documents := strings.Split(filled, "\n---\n")
	require.Len(tb, documents, 2)
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	require.NoError(tb, yaml.UnmarshalStrict([]byte(documents[0]), &validating))
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	require.NoError(tb, yaml.UnmarshalStrict([]byte(documents[1]), &mutating))
	validating.Name, mutating.Name = r.name, r.name
	to := admissionregistrationv1.ServiceReference{Namespace: r.namespace, Name: r.service, Port: &r.port}
	for i := range validating.Webhooks {
		hook := &validating.Webhooks[i]
		to.Path, hook.NamespaceSelector = hook.ClientConfig.Service.Path, r.selector()
		*hook.ClientConfig.Service = to
	}
	for i := range mutating.Webhooks {
		hook := &mutating.Webhooks[i]
		to.Path, hook.NamespaceSelector = hook.ClientConfig.Service.Path, r.selector()
		*hook.ClientConfig.Service = to
	}
	return &validating, &mutating
}

func (r registration) selector() *metav1.LabelSelector {
	among := metav1.LabelSelectorRequirement{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: r.only}
	if len(r.only) == 0 {
		among.Operator, among.Values = metav1.LabelSelectorOpNotIn, r.except
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{among}}
}

// metric returns the sum of a metric of a server over all labels except the given ones.
func metric(tb testing.TB, s *server.Server, name string, labels ...string) float64 {
	tb.Helper()
	sum, ok := s.Metric(tb.Context(), name, labels...)
	require.True(tb, ok, "the server has no metrics")
	return sum
}
