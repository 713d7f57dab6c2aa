package webhookconfig

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Validating returns the validating configuration. It has one webhook for most writes,
// and others, with failurePolicy Ignore, for writes that must not be blocked while no
// server answers: system writes, and writes of Services, Namespaces and
// CustomResourceDefinitions. Few of these matter here, and a cluster may not be
// repairable without them: the network that Overrule's pods need may itself come with a
// Service.
func (c Configuration) Validating() *WebhookConfig {
	resources := slices.Concat(CoreResources(), c.Policies, c.Selectable)
	main := validating(c.webhook(validateWebhook, PathValidate,
		append(rules(resources, allOperations...), rules(c.Scales, admissionregistrationv1.Update)...), notSystemWrite()))
	written := resources
	if c.Services {
		written = append(written, serviceResource)
	}
	return c.configuration("ValidatingWebhookConfiguration",
		main, c.systemWrites(written), c.services(), c.namespaces(), c.definitions(), c.otherVersions())
}

// validating completes a webhook of the validating configuration. Its side effects are the
// Events of denials.
func validating(hook webhook) webhook {
	hook.SideEffects = new(admissionregistrationv1.SideEffectClassNoneOnDryRun)
	return hook
}

// optionalWebhook returns a webhook for writes that are admitted if no server answers.
func (c Configuration) optionalWebhook(name string, rules []admissionregistrationv1.RuleWithOperations, conditions ...admissionregistrationv1.MatchCondition) webhook {
	hook := validating(c.webhook(name+"."+validateWebhook, PathValidate, rules, conditions...))
	hook.FailurePolicy = new(admissionregistrationv1.Ignore)
	return hook
}

// services returns the webhook of Services. If no policy depends on them it has no rules,
// and so is never called. It is not left out, because another client may own its
// caBundle. System writes of Services have the webhook of all system writes.
func (c Configuration) services() webhook {
	var of []Resource
	if c.Services {
		of = []Resource{serviceResource, serviceStatus}
	}
	return c.optionalWebhook("services", rules(of, allOperations...), notSystemWrite(), condition("itself-or-labelled", statusChangesMetadata))
}

// namespaces returns the webhook of Namespaces: their deletion removes policies, and
// their labels decide which routes attach to a listener.
func (c Configuration) namespaces() webhook {
	return c.optionalWebhook("namespaces", rules(namespaceResources, existing...),
		condition("deleted-or-labelled", "request.operation == 'DELETE' || "+labelsOrOwnersChanged))
}

// definitions returns the webhook of CustomResourceDefinitions, whose deletion removes
// whole kinds: the API server deletes the objects without a call for any of them. A write
// of the status can stop serving a kind, or serve a second definition of a kind. Its first
// condition lists the known groups.
func (c Configuration) definitions() webhook {
	return c.optionalWebhook("definitions", rules(definitionResources, allOperations...),
		condition("known", celList(c.Definitions())+".exists(d, d.endsWith('.' + (request.operation == 'DELETE' ? oldObject : object).spec.group))"),
		condition("deleted-or-redefined", "request.operation != 'UPDATE' || object.spec != oldObject.spec || "+labelsOrOwnersChanged+
			" || ("+established("oldObject")+") != ("+established("object")+")"))
}

// Definitions returns the names of the CustomResourceDefinitions of the policy kinds, of
// Gateway API and of our own kinds, sorted. The writes of all definitions of their groups
// are evaluated.
func (c Configuration) Definitions() []string {
	return texts(slices.Concat(CoreResources(), c.Policies, c.Selectable), func(r Resource) string { return r.Resource + "." + r.Group })
}

// otherVersions returns the webhook of subresources of policies that are written in
// another version than the one that is read. A status that a controller writes in the
// version that is read is not sent.
func (c Configuration) otherVersions() webhook {
	return validating(c.webhook("versions."+validateWebhook, PathValidate, rules(c.Subresources, admissionregistrationv1.Update),
		condition("other-version", "!(request.requestResource.group + '/' + request.requestResource.version + '/' + request.requestResource.resource in "+
			celList(texts(c.Policies, func(r Resource) string { return r.Group + "/" + r.Version + "/" + r.Resource }))+")")))
}

// texts returns the texts of resources, sorted, each once.
func texts(all []Resource, text func(Resource) string) []string {
	out := sets.New[string]()
	for _, r := range all {
		out.Insert(text(r))
	}
	return sets.List(out)
}
