package canary

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// diagnose returns the likely reason why a write was admitted without evaluation.
func (c *Canary) diagnose(ctx context.Context) string {
	config, err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, c.opts.Configuration, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("ValidatingWebhookConfiguration %s not found: no write is evaluated", c.opts.Configuration)
	case err != nil:
		return fmt.Sprintf("cannot read the webhook configuration: %v", err)
	}
	i := slices.IndexFunc(config.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == validating })
	if i < 0 {
		return fmt.Sprintf("ValidatingWebhookConfiguration %s has no webhook %s", c.opts.Configuration, validating)
	}
	return diagnoseWebhook(config.Webhooks[i])
}

// diagnoseWebhook returns what is wrong with a webhook that exists.
func diagnoseWebhook(w admissionregistrationv1.ValidatingWebhook) string {
	switch {
	case !slices.ContainsFunc(w.Rules, matchesProfiles):
		return fmt.Sprintf("%s has no rule for creating %s", w.Name, profiles.GroupResource())
	case slices.ContainsFunc(w.MatchConditions, isForeignCondition) || w.ObjectSelector != nil && len(w.ObjectSelector.MatchExpressions)+len(w.ObjectSelector.MatchLabels) > 0:
		return fmt.Sprintf("%s has a match condition or an object selector that Overrule does not set and that may exclude the write", w.Name)
	case w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore:
		return fmt.Sprintf("%s has failurePolicy Ignore, so writes are admitted when calls fail; the log of the API server has the cause, see %q", w.Name, "failing open")
	default:
		return fmt.Sprintf("%s has a rule for the write and failurePolicy Fail; the API server may not have observed the configuration yet", w.Name)
	}
}

// isForeignCondition reports whether Overrule did not write a match condition.
func isForeignCondition(c admissionregistrationv1.MatchCondition) bool {
	return c.Name != "not-of-the-system"
}

func matchesProfiles(r admissionregistrationv1.RuleWithOperations) bool {
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return has(r.APIGroups, profiles.Group) && has(r.APIVersions, profiles.Version) && has(r.Resources, profiles.Resource) &&
		(slices.Contains(r.Operations, admissionregistrationv1.Create) || slices.Contains(r.Operations, admissionregistrationv1.OperationAll))
}
