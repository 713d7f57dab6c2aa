package webhookconfig

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/test/messages"
)

func wantedWebhooks(t *testing.T) []webhook {
	t.Helper()
	want, err := toWebhookConfig(configuration().Validating())
	require.NoError(t, err)
	return want.Webhooks
}

func TestDifferences(t *testing.T) {
	url, three, never := "https://elsewhere", int32(30), admissionregistrationv1.Exact
	for want, edit := range map[string]func(h *webhook){
		"":                                 func(h *webhook) {},
		"validate.overrule.dev is missing": func(h *webhook) { h.Name = "renamed.overrule.dev" },
		"validate.overrule.dev: clientConfig … overrule-system/hooks":                             func(h *webhook) { h.ClientConfig.Service, h.ClientConfig.URL = nil, &url },
		"validate.overrule.dev: caBundle is empty":                                                func(h *webhook) { h.ClientConfig.CABundle = nil },
		"validate.overrule.dev: caBundle differs":                                                 func(h *webhook) { h.ClientConfig.CABundle = []byte("theirs") },
		"validate.overrule.dev: failurePolicy is null, expected Ignore":                           func(h *webhook) { h.FailurePolicy = nil },
		"validate.overrule.dev: timeoutSeconds is 30, expected 3 (set --webhook-timeout instead)": func(h *webhook) { h.TimeoutSeconds = &three },
		"validate.overrule.dev: matchPolicy is Exact, expected Equivalent":                        func(h *webhook) { h.MatchPolicy = &never },
		"validate.overrule.dev: namespaceSelector differs":                                        func(h *webhook) { h.NamespaceSelector.MatchLabels = map[string]string{"a": "b"} },
		"validate.overrule.dev: objectSelector differs":                                           func(h *webhook) { h.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} },
		"validate.overrule.dev: matchConditions differ":                                           func(h *webhook) { h.MatchConditions[0].Expression = "false" },
		"validate.overrule.dev: rules … CREATE gatewayclasses.gateway.networking.k8s.io, DELETE gatewayclasses.gateway.networking.k8s.io, UPDATE gatewayclasses.gateway.networking.k8s.io": func(h *webhook) { h.Rules = h.Rules[1:] },
		"validate.overrule.dev: rules differ": func(h *webhook) { h.Rules[0].APIVersions = []string{"v1", "v2"} },
	} {
		t.Run(want, func(t *testing.T) {
			there := wantedWebhooks(t)
			edit(&there[0])
			got := differences(wantedWebhooks(t), there, true)
			if want == "" {
				assert.Empty(t, got)
				return
			}
			assertDifferences(t, want, got)
		})
	}
}

func TestTimeoutOfSystemWritesIsFixed(t *testing.T) {
	want, there, long := wantedWebhooks(t), wantedWebhooks(t), int32(30)
	there[1].TimeoutSeconds = &long
	assert.Equal(t, []string{"system.validate.overrule.dev: timeoutSeconds is 30, expected 1"}, differences(want, there, true))
}

func TestManyMissingRulesAreCounted(t *testing.T) {
	there := wantedWebhooks(t)
	there[0].Rules = nil
	got := differences(wantedWebhooks(t), there, true)
	require.Len(t, got, 1)
	assert.Regexp(t, `^validate\.overrule\.dev: rules .* (\S+ \S+, ){4}\S+ \S+ and \d+ more$`, got[0])
}

func TestExternalBundleIsNoDifference(t *testing.T) {
	there := wantedWebhooks(t)
	there[0].ClientConfig.CABundle = []byte("theirs")
	assert.Empty(t, differences(wantedWebhooks(t), there, false))
}

func TestOtherWebhooksAreNoDifference(t *testing.T) {
	assert.Empty(t, differences(wantedWebhooks(t), append(wantedWebhooks(t), webhook{Name: "theirs.example.com"}), true))
}

// A path may hold a secret, and what differs goes to the log and to Events.
func TestPathIsNotInDifference(t *testing.T) {
	there, path := wantedWebhooks(t), "/secret"
	there[0].ClientConfig.Service.Path = &path
	assertDifferences(t, "validate.overrule.dev: clientConfig … overrule-system/hooks", differences(wantedWebhooks(t), there, true))
}

// assertDifferences checks that there is one difference, which contains the parts of
// want that "…" separates.
func assertDifferences(t *testing.T, want string, got []string) {
	t.Helper()
	messages.Golden(t, got...)
	require.Len(t, got, 1)
	for part := range strings.SplitSeq(want, " … ") {
		assert.Contains(t, got[0], part)
	}
}
