package webhookconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func wanted(t *testing.T) []hook {
	t.Helper()
	want, err := standingOf(configuration().Validating())
	require.NoError(t, err)
	return want.Hooks
}

func TestEachDifferenceIsSaid(t *testing.T) {
	url, three, never := "https://elsewhere", int32(30), admissionregistrationv1.Exact
	for want, edit := range map[string]func(h *hook){
		"":                                 func(h *hook) {},
		"validate.overrule.dev is missing": func(h *hook) { h.Name = "renamed.overrule.dev" },
		"validate.overrule.dev: clientConfig does not lead to overrule-system/hooks by its path and port": func(h *hook) { h.ClientConfig.Service, h.ClientConfig.URL = nil, &url },
		"validate.overrule.dev: caBundle is empty":                                                        func(h *hook) { h.ClientConfig.CABundle = nil },
		"validate.overrule.dev: caBundle is another":                                                      func(h *hook) { h.ClientConfig.CABundle = []byte("theirs") },
		"validate.overrule.dev: failurePolicy is null and not Ignore":                                     func(h *hook) { h.FailurePolicy = nil },
		"validate.overrule.dev: timeoutSeconds is 30 and not 3":                                           func(h *hook) { h.TimeoutSeconds = &three },
		"validate.overrule.dev: matchPolicy is Exact and not Equivalent":                                  func(h *hook) { h.MatchPolicy = &never },
		"validate.overrule.dev: namespaceSelector is another":                                             func(h *hook) { h.NamespaceSelector.MatchLabels = map[string]string{"a": "b"} },
		"validate.overrule.dev: objectSelector is another":                                                func(h *hook) { h.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} },
		"validate.overrule.dev: matchConditions are others":                                               func(h *hook) { h.MatchConditions[0].Expression = "false" },
		"validate.overrule.dev: rules lack CREATE gatewayclasses.gateway.networking.k8s.io, DELETE gatewayclasses.gateway.networking.k8s.io, UPDATE gatewayclasses.gateway.networking.k8s.io": func(h *hook) { h.Rules = h.Rules[1:] },
		"validate.overrule.dev: rules are others": func(h *hook) { h.Rules[0].APIVersions = []string{"v1", "v2"} },
	} {
		t.Run(want, func(t *testing.T) {
			there := wanted(t)
			edit(&there[0])
			got := differences(wanted(t), there, true)
			if want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Equal(t, []string{want}, got)
		})
	}
}

func TestManyRulesThatAreLackingAreCounted(t *testing.T) {
	there := wanted(t)
	there[0].Rules = nil
	got := differences(wanted(t), there, true)
	require.Len(t, got, 1)
	assert.Regexp(t, `^validate\.overrule\.dev: rules lack (\S+ \S+, ){4}\S+ \S+ and \d+ more$`, got[0])
}

func TestABundleThatIsAnothersIsNoDifference(t *testing.T) {
	there := wanted(t)
	there[0].ClientConfig.CABundle = []byte("theirs")
	assert.Empty(t, differences(wanted(t), there, false))
}

func TestWebhooksOfOthersBesideOursAreNoDifference(t *testing.T) {
	assert.Empty(t, differences(wanted(t), append(wanted(t), hook{Name: "theirs.example.com"}), true))
}

// A path may hold a secret, and what differs goes to the log and to Events.
func TestAPathIsNotSaid(t *testing.T) {
	there, path := wanted(t), "/secret"
	there[0].ClientConfig.Service.Path = &path
	assert.Equal(t, []string{"validate.overrule.dev: clientConfig does not lead to overrule-system/hooks by its path and port"}, differences(wanted(t), there, true))
}
