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

func leadsTo(service, bundle string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "overrule-system", Name: service}, CABundle: []byte(bundle),
	}
}

func TestWhatAPIServersTrustIsThatOfOurWebhooks(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	url, meta := "https://elsewhere", metav1.ObjectMeta{Name: configurations}
	client := fake.NewClientset(
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "m", ClientConfig: leadsTo("overrule", "one")},
			{Name: "added", ClientConfig: leadsTo("another", "theirs")},
		}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "v", ClientConfig: leadsTo("overrule", "two")},
			{Name: "url", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: []byte("theirs")}},
		}},
	)
	got, err := standing(client, parsed(t))(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []certs.TrustedBundle{
		{Where: "m in the mutating webhook configuration overrule", CABundle: []byte("one")},
		{Where: "v in the validating webhook configuration overrule", CABundle: []byte("two")},
	}, got)

	got, err = standing(fake.NewClientset(), parsed(t))(t.Context())
	require.NoError(t, err, "before there are any")
	assert.Empty(t, got)
}

func TestWhatAPIServersTrustCannotBeRead(t *testing.T) {
	for resource, want := range map[string]string{
		"mutatingwebhookconfigurations":   "read the mutating webhook configuration overrule: forbidden",
		"validatingwebhookconfigurations": "read the validating webhook configuration overrule: forbidden",
	} {
		client := fake.NewClientset()
		client.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("forbidden")
		})
		_, err := standing(client, parsed(t))(t.Context())
		assert.EqualError(t, err, want)
	}
}

func TestOnlyFilesThatThisServerPublishesAreRecalled(t *testing.T) {
	reads := func(args ...string) int {
		client := fake.NewClientset()
		i, err := newIdentity(&rest.Config{Host: "127.0.0.1:1"}, client, parsed(t, args...), logr.Discard())
		require.NoError(t, err)
		if i.recall != nil {
			i.recall(t.Context())
		}
		return len(client.Actions())
	}
	assert.Equal(t, 2, reads("--certificates=files"))
	assert.Zero(t, reads("--certificates=files", "--manage-webhooks=false"), "nobody can know what is there")
	assert.Zero(t, reads("--certificates=cert-manager"))
	assert.Zero(t, reads())
}

func TestALeaderRecallsBeforeItWrites(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client, recalled := fake.NewClientset(), false
	s := &successor{&webhookconfig.Reconciler{
		Client: client, Authority: newIdentityOfFiles(t), Log: logr.Discard(),
		PolicyResources: func() (webhookconfig.PolicyResources, bool) {
			assert.True(t, recalled)
			cancel()
			return webhookconfig.PolicyResources{}, false
		},
	}, func(context.Context) { recalled = true }}
	assert.True(t, s.NeedLeaderElection())
	require.NoError(t, s.Start(ctx))
	assert.True(t, recalled)
}

func newIdentityOfFiles(t *testing.T) webhookconfig.Authority {
	t.Helper()
	return identify(t, "--certificates=files").authority
}
