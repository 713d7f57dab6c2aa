package webhookconfig

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"

	"overrule.dev/overrule/test/logbuffer"
)

// staticConfigs returns configurations as a user applies them, with all kinds.
func staticConfigs(t *testing.T) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	var m admissionregistrationv1.MutatingWebhookConfiguration
	var v admissionregistrationv1.ValidatingWebhookConfiguration
	for into, from := range map[any]any{&m: configuration().Mutating(), &v: configuration().Validating()} {
		data, err := json.Marshal(from)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, into))
	}
	return &m, &v
}

// newStatic checks configurations in a cluster that has one policy kind.
func newStatic(objects ...runtime.Object) *Reconciler {
	c := configuration()
	c.CABundle, c.PolicyResources = nil, PolicyResources{}
	return &Reconciler{
		Static: true, Client: fake.NewClientset(objects...), Configuration: c, Authority: newFakeAuthority(""), Log: (&logbuffer.Buffer{}).Logger(),
		PolicyResources: func() (PolicyResources, bool) {
			return PolicyResources{Policies: []Resource{{"kuadrant.io", "v1", "authpolicies", true}}}, true
		},
	}
}

func TestAllowedDifferences(t *testing.T) {
	m, v := staticConfigs(t)
	fail, ten := admissionregistrationv1.Fail, int32(10)
	i := newStatic(m, v)
	require.NoError(t, i.reconcile(t.Context()), "rules and definitions of more kinds than there are")
	v.Webhooks[0].TimeoutSeconds = &ten
	require.NoError(t, newStatic(m, v).reconcile(t.Context()))
	i = newStatic(m, v)
	i.Configuration.FailurePolicy = fail
	require.NoError(t, i.reconcile(t.Context()), "Ignore where the default is Fail")
}

func TestMissingServicesWebhook(t *testing.T) {
	m, v := staticConfigs(t)
	v.Webhooks = slices.DeleteFunc(v.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool {
		return h.Name == "services.validate.overrule.dev"
	})
	i := newStatic(m, v)
	require.NoError(t, i.reconcile(t.Context()), "it would be called for nothing")
	resources, _ := i.PolicyResources()
	resources.Services = true
	i.PolicyResources = func() (PolicyResources, bool) { return resources, true }
	require.ErrorContains(t, i.reconcile(t.Context()), "services.validate.overrule.dev is missing: apply it again")
	_, v = staticConfigs(t) // with the entry, and without its rules
	i.Client = fake.NewClientset(m, v)
	require.ErrorContains(t, i.reconcile(t.Context()), "CREATE services, CREATE services/status, DELETE services, DELETE services/status, UPDATE services, and 1 more")
}

func TestStaticReportsDifferences(t *testing.T) {
	for want, edit := range map[string]func(*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration){
		"mutating webhook configuration overrule: mutate.overrule.dev: caBundle lacks the CA of the server: apply it again": func(m *admissionregistrationv1.MutatingWebhookConfiguration, _ *admissionregistrationv1.ValidatingWebhookConfiguration) {
			m.Webhooks[0].ClientConfig.CABundle = nil
		},
		"CREATE authpolicies.kuadrant.io, UPDATE authpolicies.kuadrant.io: apply it again": func(m *admissionregistrationv1.MutatingWebhookConfiguration, _ *admissionregistrationv1.ValidatingWebhookConfiguration) {
			m.Webhooks[0].Rules[1].Resources = []string{"ratelimitpolicies"}
		},
	} {
		t.Run(want, func(t *testing.T) {
			m, v := staticConfigs(t)
			edit(m, v)
			require.ErrorContains(t, newStatic(m, v).reconcile(t.Context()), want)
		})
	}
}

func TestStaticReportsMissingConfiguration(t *testing.T) {
	err := newStatic().reconcile(t.Context())
	require.ErrorContains(t, err, "mutating webhook configuration overrule: not found, so no write is evaluated: apply it")
	require.ErrorContains(t, err, "validating webhook configuration overrule: not found")

	i := newStatic()
	i.Client.(*fake.Clientset).PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no right") })
	require.ErrorContains(t, i.reconcile(t.Context()), "mutating webhook configuration overrule: no right")
}

func TestStaticWaitsForKinds(t *testing.T) {
	i := newStatic()
	i.PolicyResources = func() (PolicyResources, bool) { return PolicyResources{}, false }
	assert.ErrorIs(t, i.reconcile(t.Context()), errNotReady)
	assert.NoError(t, i.Problem())
	assert.False(t, i.NeedLeaderElection())
}

func TestManyMissingRulesAreCounted(t *testing.T) {
	_, v := staticConfigs(t)
	missing := uncovered(v.Webhooks[0].Rules, nil)
	assert.True(t, strings.HasPrefix(missing, "CREATE authpolicies.kuadrant.io, CREATE backendtlspolicies."), missing)
	assert.Regexp(t, `, and \d+ more$`, missing)
	assert.Empty(t, uncovered(v.Webhooks[0].Rules, v.Webhooks[0].Rules))
}

func TestBundleHasTheCA(t *testing.T) {
	ours, _, err := cert.GenerateSelfSignedCertKey("overrule", nil, nil)
	require.NoError(t, err)
	theirs, _, err := cert.GenerateSelfSignedCertKey("other", nil, nil)
	require.NoError(t, err)
	both := slices.Concat(theirs, ours)
	assert.True(t, containsCAs(both, ours))
	assert.False(t, containsCAs(theirs, ours))
	assert.False(t, containsCAs(theirs, both))
	assert.False(t, containsCAs(nil, nil))
	assert.True(t, containsCAs(theirs, nil), "the CA is not known")
	assert.False(t, containsCAs([]byte("no PEM"), ours))
	assert.False(t, containsCAs(ours, []byte("no PEM")))
}
