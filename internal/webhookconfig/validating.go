package webhookconfig

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

// Validating returns the validating configuration. It has one webhook for most writes,
// and others, with failurePolicy Ignore, for writes that must not be blocked while no
// server answers: system writes, and writes of Services, Namespaces and
// CustomResourceDefinitions. Few of these matter here, and a cluster may not be
// repairable without them: the network that Overrule's pods need may itself come with a
// Service.
func (c Configuration) Validating() *ac.ValidatingWebhookConfigurationApplyConfiguration {
	resources := append(CoreResources(), c.Policies...)
	main := c.validatingWebhook(validateWebhook).
		WithRules(append(rules(resources, allOperations...), rules(c.Scales, admissionregistrationv1.Update)...)...).
		WithMatchConditions(notSystemWrite()).
		WithFailurePolicy(c.FailurePolicy)
	written := resources
	if c.Services {
		written = append(written, serviceResource)
	}
	return ac.ValidatingWebhookConfiguration(c.Name).WithLabels(labels()).WithAnnotations(c.annotations()).WithOwnerReferences(c.ownerReferences()...).
		WithWebhooks(main, c.systemWrites(written), c.services(), c.namespaces(), c.definitions(), c.otherVersions())
}

// validatingWebhook returns a webhook of the validating configuration. Its side effects
// are the Events of denials.
func (c Configuration) validatingWebhook(name string) *ac.ValidatingWebhookApplyConfiguration {
	return ac.ValidatingWebhook().
		WithName(name).
		WithClientConfig(c.clientConfig(PathValidate)).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithNamespaceSelector(c.namespaceSelector()).
		WithObjectSelector(acmeta.LabelSelector()). // explicit, so that a narrower one is reverted
		WithSideEffects(admissionregistrationv1.SideEffectClassNoneOnDryRun).
		WithTimeoutSeconds(c.timeoutSeconds()).
		WithAdmissionReviewVersions("v1")
}

// optionalWebhook returns a webhook for updates and deletions of resources, which are
// admitted if no server answers.
func (c Configuration) optionalWebhook(name string, resources ...Resource) *ac.ValidatingWebhookApplyConfiguration {
	return c.validatingWebhook(name + "." + validateWebhook).
		WithRules(rules(resources, admissionregistrationv1.Update, admissionregistrationv1.Delete)...).
		WithFailurePolicy(admissionregistrationv1.Ignore)
}

// services returns the webhook of Services. If no policy depends on them it has no rules,
// and so is never called. It is not left out, because another client may own its
// caBundle. System writes of Services have the webhook of all system writes.
func (c Configuration) services() *ac.ValidatingWebhookApplyConfiguration {
	hook := c.optionalWebhook("services").WithMatchConditions(notSystemWrite(), condition("itself-or-labelled", statusChangesMetadata))
	if c.Services {
		hook.WithRules(rules([]Resource{serviceResource, serviceStatus}, allOperations...)...)
	}
	return hook
}

// namespaces returns the webhook of Namespaces: their deletion removes policies, and
// their labels decide which routes attach to a listener.
func (c Configuration) namespaces() *ac.ValidatingWebhookApplyConfiguration {
	return c.optionalWebhook("namespaces", namespaceResources...).WithMatchConditions(
		condition("deleted-or-labelled", "request.operation == 'DELETE' || "+labelsOrOwnersChanged))
}

// conditionKnown is the name of the condition that lists the known groups.
const conditionKnown = "known"

// definitions returns the webhook of CustomResourceDefinitions, whose deletion removes
// whole kinds: the API server deletes the objects without a call for any of them. A write
// of the status can stop serving a kind, or serve a second definition of a kind.
func (c Configuration) definitions() *ac.ValidatingWebhookApplyConfiguration {
	return c.optionalWebhook("definitions").WithRules(rules(definitionResources, allOperations...)...).WithMatchConditions(
		condition(conditionKnown, celList(c.Definitions())+".exists(d, d.endsWith('.' + (request.operation == 'DELETE' ? oldObject : object).spec.group))"),
		condition("deleted-or-redefined", "request.operation != 'UPDATE' || object.spec != oldObject.spec || "+labelsOrOwnersChanged+
			" || ("+established("oldObject")+") != ("+established("object")+")"))
}

// Definitions returns the names of the CustomResourceDefinitions of the policy kinds, of
// Gateway API and of our own kinds, sorted. The writes of all definitions of their groups
// are evaluated.
func (c Configuration) Definitions() []string {
	var out []string
	for _, r := range append(CoreResources(), c.Policies...) {
		out = append(out, r.Resource+"."+r.Group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const (
	// versionsWebhook is the webhook of writes in other versions than the one that is
	// read.
	versionsWebhook = "versions." + validateWebhook
	// conditionVersion is the name of the condition that lists the versions that are
	// read.
	conditionVersion = "other-version"
)

// otherVersions returns the webhook of subresources of policies that are written in
// another version than the one that is read. A status that a controller writes in the
// version that is read is not sent.
func (c Configuration) otherVersions() *ac.ValidatingWebhookApplyConfiguration {
	return c.validatingWebhook(versionsWebhook).
		WithRules(rules(c.Subresources, admissionregistrationv1.Update)...).
		WithMatchConditions(condition(conditionVersion, "!(request.requestResource.group + '/' + request.requestResource.version + '/' + request.requestResource.resource in "+
			celList(c.readVersions())+")")).
		WithFailurePolicy(c.FailurePolicy)
}

// readVersions returns the resources of policies, each in the version that is read.
func (c Configuration) readVersions() []string {
	var out []string
	for _, r := range c.Policies {
		out = append(out, r.Group+"/"+r.Version+"/"+r.Resource)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
