package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Why a write was admitted without evaluation.
func TestDiagnosis(t *testing.T) {
	const foreign = "validate.overrule.dev has a match condition or an object selector that Overrule does not set and that may exclude the write"
	for name, c := range map[string]struct {
		edit func(*admissionregistrationv1.ValidatingWebhookConfiguration)
		want string
	}{
		"no configuration": {want: "ValidatingWebhookConfiguration overrule not found: no write is evaluated"},
		"no webhook": {func(v *admissionregistrationv1.ValidatingWebhookConfiguration) { v.Webhooks = v.Webhooks[1:] },
			"ValidatingWebhookConfiguration overrule has no webhook validate.overrule.dev"},
		"no rule": {func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
			v.Webhooks[0].Rules[0].Resources = []string{"authpolicies"}
		}, "validate.overrule.dev has no rule for creating policyprofiles.overrule.dev"},
		"a rule for other operations": {func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
			v.Webhooks[0].Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
		}, "validate.overrule.dev has no rule for creating policyprofiles.overrule.dev"},
		"a match condition of others": {func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
			v.Webhooks[0].MatchConditions = append(v.Webhooks[0].MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
		}, foreign},
		"an object selector": {func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
			v.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, foreign},
		"failurePolicy Ignore": {func(v *admissionregistrationv1.ValidatingWebhookConfiguration) {
			v.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
		}, `validate.overrule.dev has failurePolicy Ignore, so writes are admitted when calls fail; the log of the API server has the cause, see "failing open"`},
		"nothing is wrong": {func(*admissionregistrationv1.ValidatingWebhookConfiguration) {},
			"validate.overrule.dev has a rule for the write and failurePolicy Fail; the API server may not have observed the configuration yet"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if c.edit != nil {
				v := ownConfiguration()
				c.edit(v)
				client = fake.NewClientset(v)
			}
			by := &Canary{client: client, opts: Options{Configuration: "overrule"}}
			assert.Equal(t, c.want, by.diagnose(t.Context()))
		})
	}
}

// ownConfiguration is a configuration as Overrule writes it.
func ownConfiguration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "overrule"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: validating, FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "not-of-the-system", Expression: "true"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{api.Group}, APIVersions: []string{"*"}, Resources: []string{"policyprofiles"}},
			}},
		}},
	}
}
