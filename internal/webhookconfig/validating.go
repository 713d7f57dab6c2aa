package webhookconfig

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// Writes of Services, of namespaces and of CustomResourceDefinitions have entries
// of their own: few of them matter here, and none may be held up by a server that
// cannot be reached, for a cluster could not be mended without them: the network
// that Overrule's pods wait for may itself come with a Service.

// serviceResource is judged where policies depend on Services, and so is
// serviceStatus: the status of a Service, a Namespace or a CustomResourceDefinition
// stores labels and owners, too. That of a custom resource stores its status alone.
var (
	serviceResource = Resource{"", "v1", "services", true}
	serviceStatus   = Resource{"", "v1", "services/status", true}
)

// itselfOrRelabelled leaves out the writes of a status that change nothing else.
var statusChangesMetadata = "!has(request.subResource) || request.subResource == '' || " + labelsOrOwnersChanged

// services is the entry of Services: without rules, and so never called for, while
// no policy depends on them. It stays then, with the caBundle that somebody else may
// have written to it. Those that the system writes are in the entry of all that it writes.
func (c Configuration) services() *ac.ValidatingWebhookApplyConfiguration {
	entry := c.optionalWebhook("services").WithMatchConditions(notSystemWrite(), condition("itself-or-labelled", statusChangesMetadata))
	if c.Services {
		entry.WithRules(rules([]Resource{serviceResource, serviceStatus}, allOperations...)...)
	}
	return entry
}

// namespaces is the entry of what takes the policies of a namespace out of
// force, or its routes off a listener: its deletion and its labels, which its
// subresources take, too.
func (c Configuration) namespaces() *ac.ValidatingWebhookApplyConfiguration {
	return c.optionalWebhook("namespaces",
		Resource{"", "v1", "namespaces", false}, Resource{"", "v1", "namespaces/finalize", false}, Resource{"", "v1", "namespaces/status", false},
	).WithMatchConditions(
		condition("deleted-or-labelled", "request.operation == 'DELETE' || "+labelsOrOwnersChanged))
}

// conditionKnown is the name of the condition that lists what is judged.
const conditionKnown = "known"

// definitionResource is judged where a kind of its group is known, and so is
// definitionStatus.
var (
	definitionResource = Resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions", false}
	definitionStatus   = Resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions/status", false}
)

// definitions is the entry of what takes whole kinds out of force: the objects
// of a definition that is deleted go with no call for any of them. By its status
// a kind is not served any more, and not read, and a second definition of a kind
// is served.
func (c Configuration) definitions() *ac.ValidatingWebhookApplyConfiguration {
	return c.optionalWebhook("definitions").WithRules(rules([]Resource{definitionResource, definitionStatus}, allOperations...)...).WithMatchConditions(
		condition(conditionKnown, celList(c.Definitions())+".exists(d, d.endsWith('.' + (request.operation == 'DELETE' ? oldObject : object).spec.group))"),
		condition("deleted-or-defined-anew", "request.operation != 'UPDATE' || object.spec != oldObject.spec || "+labelsOrOwnersChanged+
			" || ("+established("oldObject")+") != ("+established("object")+")"))
}

// established is the condition that a definition is served.
func established(object string) string {
	return fmt.Sprintf("has(%[1]s.status) && has(%[1]s.status.conditions) && %[1]s.status.conditions.exists(c, c.type == 'Established' && c.status == 'True')", object)
}

// Definitions are the names of the CustomResourceDefinitions whose groups have the
// writes of all definitions judged, sorted: those of the policy kinds, of Gateway API
// and our own.
func (c Configuration) Definitions() []string {
	var out []string
	for _, r := range append(CoreResources(), c.Policies...) {
		out = append(out, r.Resource+"."+r.Group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// aside returns an entry for edits and deletions of a resource that goes
// without an answer if there is none.
func (c Configuration) optionalWebhook(name string, of ...Resource) *ac.ValidatingWebhookApplyConfiguration {
	return c.validatingWebhook(name + "." + validateWebhook).
		WithRules(rules(of, admissionregistrationv1.Update, admissionregistrationv1.Delete)...).
		WithFailurePolicy(admissionregistrationv1.Ignore)
}

func condition(name, expression string) *ac.MatchConditionApplyConfiguration {
	return ac.MatchCondition().WithName(name).WithExpression(expression)
}

// relabelled is the condition that labels differ, or owners: with an owner, an
// object is deleted with no one to ask.
var labelsOrOwnersChanged = fieldChanged("metadata", "labels") + " || " + fieldChanged("metadata", "ownerReferences")

// differ is the condition that a field which may be absent differs between the
// two objects of a request.
func fieldChanged(parent, field string) string {
	now, was := "object."+parent, "oldObject."+parent
	return fmt.Sprintf("has(%[1]s.%[3]s) != has(%[2]s.%[3]s) || has(%[1]s.%[3]s) && %[1]s.%[3]s != %[2]s.%[3]s", now, was, field)
}

// versionsHook is the webhook of writes in other versions than the one that is read.
const versionsWebhook = "versions." + validateWebhook

// versions is the entry of subresources of policies that are written in another
// version than the one that is read. The status that a controller writes in the
// version that is read is not sent.
func (c Configuration) otherVersions() *ac.ValidatingWebhookApplyConfiguration {
	return c.validatingWebhook(versionsWebhook).
		WithRules(rules(c.Subresources, admissionregistrationv1.Update)...).
		WithMatchConditions(condition(conditionVersion, "!(request.requestResource.group + '/' + request.requestResource.version + '/' + request.requestResource.resource in "+
			celList(c.readVersions())+")")).
		WithFailurePolicy(c.FailurePolicy)
}

// conditionVersion is the name of the condition that lists the versions that are
// read.
const conditionVersion = "other-version"

// readVersions are the resources of policies, each in the version that is read.
func (c Configuration) readVersions() []string {
	var out []string
	for _, r := range c.Policies {
		out = append(out, r.Group+"/"+r.Version+"/"+r.Resource)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
