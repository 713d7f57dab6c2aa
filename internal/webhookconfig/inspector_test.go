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

// inspector looks at configurations in a cluster that has one policy kind.
func newInspector(objects ...runtime.Object) *Inspector {
	c := configuration()
	c.CABundle, c.PolicyResources = nil, PolicyResources{}
	return &Inspector{
		Client: fake.NewClientset(objects...), Configuration: c, Authority: newFakeAuthority(""), Log: (&logbuffer.Buffer{}).Logger(),
		PolicyResources: func() (PolicyResources, bool) {
			return PolicyResources{Policies: []Resource{{"kuadrant.io", "v1", "authpolicies", true}}}, true
		},
	}
}

func TestAllowedDifferences(t *testing.T) {
	m, v := staticConfigs(t)
	fail, ten := admissionregistrationv1.Fail, int32(10)
	i := newInspector(m, v)
	require.NoError(t, i.check(t.Context()), "rules and definitions of more kinds than there are")
	v.Webhooks[0].TimeoutSeconds = &ten
	require.NoError(t, newInspector(m, v).check(t.Context()))
	i = newInspector(m, v)
	i.Configuration.FailurePolicy = fail
	require.NoError(t, i.check(t.Context()), "Ignore where the default is Fail")
}

func TestMissingServicesWebhook(t *testing.T) {
	m, v := staticConfigs(t)
	v.Webhooks = slices.DeleteFunc(v.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool {
		return h.Name == "services.validate.overrule.dev"
	})
	i := newInspector(m, v)
	require.NoError(t, i.check(t.Context()), "it would be called for nothing")
	resources, _ := i.PolicyResources()
	resources.Services = true
	i.PolicyResources = func() (PolicyResources, bool) { return resources, true }
	require.ErrorContains(t, i.check(t.Context()), "services.validate.overrule.dev is missing: apply it again")
	_, v = staticConfigs(t) // with the entry, and without its rules
	i.Client = fake.NewClientset(m, v)
	require.ErrorContains(t, i.check(t.Context()), "CREATE services, CREATE services/status, DELETE services, DELETE services/status, UPDATE services and 1 more")
}

func TestInspectorReportsDifferences(t *testing.T) {
	for want, edit := range map[string]func(*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration){
		"mutating webhook configuration overrule: review.overrule.dev: failurePolicy is Ignore, expected Fail: apply it again": func(m *admissionregistrationv1.MutatingWebhookConfiguration, _ *admissionregistrationv1.ValidatingWebhookConfiguration) {
			m.Webhooks[1].FailurePolicy = new(admissionregistrationv1.Ignore)
		},
		"mutating webhook configuration overrule: mutate.overrule.dev: caBundle is empty: apply it again": func(m *admissionregistrationv1.MutatingWebhookConfiguration, _ *admissionregistrationv1.ValidatingWebhookConfiguration) {
			m.Webhooks[0].ClientConfig.CABundle = nil
		},
		"validating webhook configuration overrule: definitions.validate.overrule.dev: matchConditions differ: apply it again": func(_ *admissionregistrationv1.MutatingWebhookConfiguration, v *admissionregistrationv1.ValidatingWebhookConfiguration) {
			known := &v.Webhooks[4].MatchConditions[0]
			known.Expression = strings.Replace(known.Expression, "'authpolicies.kuadrant.io', ", "", 1)
		},
		"CREATE authpolicies.kuadrant.io, UPDATE authpolicies.kuadrant.io: apply it again": func(m *admissionregistrationv1.MutatingWebhookConfiguration, _ *admissionregistrationv1.ValidatingWebhookConfiguration) {
			m.Webhooks[0].Rules[1].Resources = []string{"ratelimitpolicies"}
		},
	} {
		t.Run(want, func(t *testing.T) {
			m, v := staticConfigs(t)
			edit(m, v)
			require.ErrorContains(t, newInspector(m, v).check(t.Context()), want)
		})
	}
}

func TestInspectorReportsMissingConfiguration(t *testing.T) {
	err := newInspector().check(t.Context())
	require.ErrorContains(t, err, "mutating webhook configuration overrule: not found, so no write is evaluated: apply it")
	require.ErrorContains(t, err, "validating webhook configuration overrule: not found")

	i := newInspector()
	i.Client.(*fake.Clientset).PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no right") })
	require.ErrorContains(t, i.check(t.Context()), "mutating webhook configuration overrule: no right")
}

func TestInspectorWaitsForKinds(t *testing.T) {
	i := newInspector()
	i.PolicyResources = func() (PolicyResources, bool) { return PolicyResources{}, false }
	assert.ErrorIs(t, i.check(t.Context()), errNotReady)
	assert.NoError(t, i.Problem())
	assert.False(t, i.NeedLeaderElection())
}

func TestUnreadableBundle(t *testing.T) {
	assert.False(t, containsCAs([]byte("no PEM"), []byte("no PEM")))
}

// oneToken accepts itself.
type fixedToken string

func (o fixedToken) Accepts(token string) (ok, known bool) { return token == string(o), true }

func TestInspectorChecksToken(t *testing.T) {
	for path, good := range map[string]bool{"/mutate/s3cret": true, "/mutate": false, "/mutate/other": false, "/elsewhere/s3cret": false} {
		m, v := staticConfigs(t)
		validate := "/validate/s3cret"
		review := "/review/s3cret"
		m.Webhooks[0].ClientConfig.Service.Path, m.Webhooks[1].ClientConfig.Service.Path = &path, &review
		for k := range v.Webhooks {
			v.Webhooks[k].ClientConfig.Service.Path = &validate
		}
		i := newInspector(m, v)
		i.Tokens = fixedToken("s3cret")
		err := i.check(t.Context())
		assert.Equal(t, good, err == nil, "%s: %v", path, err)
		if !good {
			assert.NotContains(t, err.Error(), "s3cret")
		}
	}
}
