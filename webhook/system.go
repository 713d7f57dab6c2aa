package webhook

import (
	"fmt"
	"strings"

	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// What the system deletes is never denied, only recorded: it was judged when
// the namespace, or the owner, was deleted. Nor is there anything to deny about
// an object that is being deleted and only loses its finalizers. So a namespace
// must not wait for a server that is gone: these writes have an entry of their
// own, which goes without an answer if there is none.

// system is that entry. It has what the entry for all others leaves out.
func (c Configuration) system(judged []Resource) *ac.ValidatingWebhookApplyConfiguration {
	return c.aside("system", judged...).
		WithMatchConditions(condition("of-the-system", ofSystem)).
		WithTimeoutSeconds(systemTimeoutSeconds)
}

// notOfSystem is the condition of the entries that leave these writes to it.
func notOfSystem() *ac.MatchConditionApplyConfiguration {
	return condition("not-of-the-system", "!("+ofSystem+")")
}

// systemTimeoutSeconds is how long each deletion by the system waits for a
// server that hangs.
const systemTimeoutSeconds = 1

// ofSystem is the condition of a write that nothing can be said against. It is
// narrow, since what meets it goes unjudged where no server answers: whatever of
// an object may have a say in effective policies has to stay as it is.
var ofSystem = fmt.Sprintf("request.operation == 'DELETE' && (%s && has(oldObject.metadata.namespace) || %s && has(oldObject.metadata.ownerReferences)) || "+
	"request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && %s && %s && %s",
	byOneOf(emptiers...), byOneOf(collectors...), unchanged("", freeFields...), unchanged(".metadata", freeMetadata...), noNewOwner)

// What may change of an object that is being deleted; owners may only go.
var (
	freeFields   = []string{"metadata", "status"}
	freeMetadata = []string{"finalizers", "generation", "managedFields", "ownerReferences", "resourceVersion"}
)

// noNewOwner is the condition that an object has no owner that it did not have
// (guard.NewOwners): the garbage collector edits and takes away what is there.
// Looking for each among all is quadratic, and a condition over the budget of
// matchConditions turns the write away for good, whoever answers: so of more
// than mostPairs it is only asked whether they are the same.
var noNewOwner = fmt.Sprintf("(!has(object.metadata.ownerReferences) || has(oldObject.metadata.ownerReferences) && "+
	"(object.metadata.ownerReferences == oldObject.metadata.ownerReferences || "+
	"object.metadata.ownerReferences.size() * oldObject.metadata.ownerReferences.size() <= %d && "+
	"object.metadata.ownerReferences.all(o, oldObject.metadata.ownerReferences.exists(w, "+
	"o.uid == w.uid && o.apiVersion == w.apiVersion && o.kind == w.kind && o.name == w.name))))", mostPairs)

// mostPairs are those of 50 owners with 50: a few percent of the budget.
const mostPairs = 2500

// byOneOf is the condition that one of some users writes.
func byOneOf(users ...string) string { return "request.userInfo.username in " + list(users) }

// unchanged is the condition that a part of the two objects of a request is the
// same but for some fields.
func unchanged(part string, but ...string) string {
	now, was, free := "object"+part, "oldObject"+part, list(but)
	return fmt.Sprintf("%[1]s.all(k, k in %[3]s || k in %[2]s && %[1]s[k] == %[2]s[k]) && %[2]s.all(k, k in %[3]s || k in %[1]s)", now, was, free)
}

// list is a list of texts, none of which has a quote in it.
func list(texts []string) string { return "['" + strings.Join(texts, "', '") + "']" }
