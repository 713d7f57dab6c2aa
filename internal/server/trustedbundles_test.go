package server

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/webhookconfig"
)

func clientConfig(service, bundle string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "overrule-system", Name: service}, CABundle: []byte(bundle),
	}
}

func TestTrustedBundlesOfOwnWebhooks(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	url, meta := "https://elsewhere", metav1.ObjectMeta{Name: webhookConfigName}
	client := fake.NewClientset(
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "m", ClientConfig: clientConfig("overrule", "one")},
			{Name: "added", ClientConfig: clientConfig("another", "theirs")},
		}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "v", ClientConfig: clientConfig("overrule", "two")},
			{Name: "url", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: []byte("theirs")}},
		}},
	)
	got, err := trustedBundles(client, parseOptions(t))(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []certs.TrustedBundle{
		{Where: "m in the mutating webhook configuration overrule", CABundle: []byte("one")},
		{Where: "v in the validating webhook configuration overrule", CABundle: []byte("two")},
	}, got)

	got, err = trustedBundles(fake.NewClientset(), parseOptions(t))(t.Context())
	require.NoError(t, err, "without configurations")
	assert.Empty(t, got)
}

func TestTrustedBundlesErrors(t *testing.T) {
	for resource, want := range map[string]string{
		"mutatingwebhookconfigurations":   "read the mutating webhook configuration overrule: forbidden",
		"validatingwebhookconfigurations": "read the validating webhook configuration overrule: forbidden",
	} {
		client := fake.NewClientset()
		client.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("forbidden")
		})
		_, err := trustedBundles(client, parseOptions(t))(t.Context())
		assert.EqualError(t, err, want)
	}
}

func TestLoadTrustedOnlyForManagedFiles(t *testing.T) {
	reads := func(args ...string) int {
		client := fake.NewClientset()
		i, err := newCertProvider(&rest.Config{Host: "127.0.0.1:1"}, client, parseOptions(t, args...), logr.Discard())
		require.NoError(t, err)
		if i.loadTrusted != nil {
			i.loadTrusted(t.Context())
		}
		return len(client.Actions())
	}
	assert.Equal(t, 2, reads("--certificates=files"))
	assert.Zero(t, reads("--certificates=files", "--manage-webhooks=false"), "the server does not publish it")
	assert.Zero(t, reads("--certificates=cert-manager"))
	assert.Zero(t, reads())
}

func TestLeaderLoadsTrustedBundlesBeforeItWrites(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client, loaded := fake.NewClientset(), false
	s := &leaderRegistrar{&webhookconfig.Reconciler{
		Client: client, Authority: newFilesAuthority(t), Log: logr.Discard(),
		PolicyResources: func() (webhookconfig.PolicyResources, bool) {
			assert.True(t, loaded)
			cancel()
			return webhookconfig.PolicyResources{}, false
		},
	}, func(context.Context) { loaded = true }}
	assert.True(t, s.NeedLeaderElection())
	require.NoError(t, s.Start(ctx))
	assert.True(t, loaded)
}

func newFilesAuthority(t *testing.T) webhookconfig.Authority {
	t.Helper()
	return newTestProvider(t, "--certificates=files").authority
}
