package commands

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestOwnersOfOtherNamespacesAreNamed(t *testing.T) {
	own, gateway, base := authRef("app", "shop"), authRef("infra", "sso"), authRef("infra", "base")
	lost := []api.LostRule{{Rule: "rules.a", To: gateway}}
	for name, c := range map[string]struct {
		status api.ReviewStatus
		want   string
	}{
		"a policy whose rule is in effect": {api.ReviewStatus{Items: []api.EffectivePolicy{{Rules: []api.RuleOrigin{{From: gateway}, {From: own}, {From: base}, {From: gateway}}}}},
			"note: to change what policies of other namespaces set here, ask their owners: AuthPolicy infra/base, AuthPolicy infra/sso\n"},
		"a policy that took a rule": {api.ReviewStatus{Outcomes: []api.Outcome{{Policy: own, Lost: []api.LostCount{{To: gateway}}}}},
			"note: to change what policies of other namespaces set here, ask their owners: AuthPolicy infra/sso\n"},
		"policies of an explanation": {api.ReviewStatus{Explanations: []api.Explanation{{Policies: []api.Contribution{{Policy: base, Contributed: []string{"rules.b"}}, {Policy: own, Lost: lost}}}}},
			"note: to change what policies of other namespaces set here, ask their owners: AuthPolicy infra/base, AuthPolicy infra/sso\n"},
		"no policy that has no part in it": {api.ReviewStatus{Explanations: []api.Explanation{{Policies: []api.Contribution{{Policy: base}}}}}, ""},
		"no one for own policies":          {api.ReviewStatus{Items: []api.EffectivePolicy{{Rules: []api.RuleOrigin{{From: own}}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			x := &answer{ReviewStatus: &c.status, review: &review{namespace: "app"}}
			x.note(&terminal{IOStreams: genericiooptions.IOStreams{ErrOut: &stderr}}, true)
			assert.Equal(t, c.want, stderr.String())
		})
	}
}
