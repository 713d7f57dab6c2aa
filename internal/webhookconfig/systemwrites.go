package webhookconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"overrule.dev/overrule/internal/guard"
)

// The users as whom the system deletes: each controller's own or, where the
// controller manager runs without --use-service-account-credentials, the one
// that all of its controllers share.
const (
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	controllerManager   = "system:kube-controller-manager"
)

// Those as whom the garbage collector deletes, and what a namespace holds.
var (
	gcUsers        = []string{garbageCollector, controllerManager}
	namespaceUsers = []string{namespaceController, controllerManager}
)

// IsGarbageCollector reports whether the garbage collector writes as a user.
func IsGarbageCollector(user string) bool { return slices.Contains(gcUsers, user) }

// What the system deletes is never denied, only recorded: it was judged when
// the namespace, or the owner, was deleted. Nor is there anything to deny about
// an object that is being deleted and only loses its finalizers. So a namespace
// must not wait for a server that is gone: these writes have an entry of their
// own, which goes without an answer if there is none.

// system is that entry. It has what the entry for all others leaves out.
func (c Configuration) systemWrites(judged []Resource) *ac.ValidatingWebhookApplyConfiguration {
	return c.optionalWebhook("system", judged...).
		WithMatchConditions(condition("of-the-system", systemWriteCondition)).
		WithTimeoutSeconds(systemTimeoutSeconds)
}

// notOfSystem is the condition of the entries that leave these writes to it.
func notSystemWrite() *ac.MatchConditionApplyConfiguration {
	return condition("not-of-the-system", "!("+systemWriteCondition+")")
}

// systemTimeoutSeconds is how long each deletion by the system waits for a
// server that hangs.
const systemTimeoutSeconds = 1

// ofSystem is the condition of a write that nothing can be said against. It is
// narrow, since what meets it goes unjudged where no server answers: whatever of
// an object may have a say in effective policies has to stay as it is.
var systemWriteCondition = fmt.Sprintf("request.operation == 'DELETE' && (%s && has(oldObject.metadata.namespace) || %s && has(oldObject.metadata.ownerReferences)) || "+
	"request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && %s && %s && %s",
	userIn(namespaceUsers...), userIn(gcUsers...), unchangedExcept("", mutableFields...), unchangedExcept(".metadata", mutableMetadata...), noNewOwnerCondition)

// What may change of an object that is being deleted; owners may only go.
var (
	mutableFields   = []string{"metadata", "status"}
	mutableMetadata = []string{"finalizers", "generation", "managedFields", "ownerReferences", "resourceVersion"}
)

// noNewOwner is the condition that an object has no owner that it did not have
// (guard.NewOwners): the garbage collector edits and takes away what is there.
// Looking for each among all is quadratic, and a condition over the budget of
// matchConditions turns the write away for good, whoever answers: so of more
// than mostPairs it is only asked whether they are the same.
var noNewOwnerCondition = fmt.Sprintf("(!has(object.metadata.ownerReferences) || has(oldObject.metadata.ownerReferences) && "+
	"(object.metadata.ownerReferences == oldObject.metadata.ownerReferences || "+
	"object.metadata.ownerReferences.size() * oldObject.metadata.ownerReferences.size() <= %d && "+
	"object.metadata.ownerReferences.all(o, oldObject.metadata.ownerReferences.exists(w, "+
	"o.uid == w.uid && o.apiVersion == w.apiVersion && o.kind == w.kind && o.name == w.name))))", maxOwnerPairs)

// mostPairs are those of 50 owners with 50: a few percent of the budget.
const maxOwnerPairs = 2500

// byOneOf is the condition that one of some users writes.
func userIn(users ...string) string { return "request.userInfo.username in " + celList(users) }

// unchanged is the condition that a part of the two objects of a request is the
// same but for some fields.
func unchangedExcept(part string, but ...string) string {
	now, was, free := "object"+part, "oldObject"+part, celList(but)
	return fmt.Sprintf("%[1]s.all(k, k in %[3]s || k in %[2]s && %[1]s[k] == %[2]s[k]) && %[2]s.all(k, k in %[3]s || k in %[1]s)", now, was, free)
}

// list is a list of texts, none of which has a quote in it.
func celList(texts []string) string { return "['" + strings.Join(texts, "', '") + "']" }

// Why a write is spared.
const (
	reasonSystemDelete = "garbage collection or namespace deletion"
	reasonBeingDeleted = "the object is being deleted and nothing else changes"
)

// parts are the fields of a JSON object, unread: the API server writes what is the
// same in the same bytes.
type jsonFields map[string]json.RawMessage

// SystemWrite says why a request meets ofSystem, "" if it does not. What cannot
// be read does not.
func SystemWrite(r *admissionv1.AdmissionRequest) string {
	was, oldMeta := splitObject(r.OldObject.Raw)
	has := func(name string) bool { return oldMeta[name] != nil }
	user := r.UserInfo.Username
	switch r.Operation {
	case admissionv1.Delete:
		if has("namespace") && slices.Contains(namespaceUsers, user) || has("ownerReferences") && slices.Contains(gcUsers, user) {
			return reasonSystemDelete
		}
	case admissionv1.Update:
		now, newMeta := splitObject(r.Object.Raw)
		if has("deletionTimestamp") && noNewOwner(newMeta["ownerReferences"], oldMeta["ownerReferences"]) &&
			sameExcept(now, was, mutableFields) && sameExcept(newMeta, oldMeta, mutableMetadata) {
			return reasonBeingDeleted
		}
	default: // nothing else is of the system
	}
	return ""
}

// partsOf returns those of an object and of its metadata, none of what
// cannot be read.
func splitObject(object []byte) (all, metadata jsonFields) {
	if json.Unmarshal(object, &all) != nil || json.Unmarshal(all["metadata"], &metadata) != nil {
		return nil, nil
	}
	return all, metadata
}

// same reports whether all fields are the same but for those that are free.
func sameExcept(now, was jsonFields, free []string) bool {
	isFree := func(name string, _ json.RawMessage) bool { return slices.Contains(free, name) }
	maps.DeleteFunc(now, isFree)
	maps.DeleteFunc(was, isFree)
	return maps.EqualFunc(now, was, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// noOtherOwner is noNewOwner of two lists of owners, which may be absent.
func noNewOwner(now, was []byte) bool {
	if now == nil || bytes.Equal(now, was) {
		return true
	}
	var n, w []metav1.OwnerReference
	if json.Unmarshal(now, &n) != nil || json.Unmarshal(was, &w) != nil {
		return false
	}
	return len(n)*len(w) <= maxOwnerPairs && guard.NewOwners(w, n) == ""
}
