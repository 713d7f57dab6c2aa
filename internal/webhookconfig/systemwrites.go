package webhookconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/guard"
)

// System writes are deletions by the garbage collector and by the namespace controller,
// and updates of an object that is being deleted which only remove finalizers. They are
// recorded, and not denied: the deletion of the owner or of the namespace was evaluated.
// They have a webhook of their own with failurePolicy Ignore, so that a namespace
// terminates while no server answers.

// The users of controllers that delete objects: each controller's own or, if the
// controller manager runs without --use-service-account-credentials, one that all of its
// controllers share.
const (
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	controllerManager   = "system:kube-controller-manager"
)

// The users that delete objects with owners, and the objects of a namespace.
var (
	gcUsers        = []string{garbageCollector, controllerManager}
	namespaceUsers = []string{namespaceController, controllerManager}
)

// IsGarbageCollector reports whether a user is the garbage collector.
func IsGarbageCollector(user string) bool { return slices.Contains(gcUsers, user) }

// systemWrites returns the webhook of system writes. The main webhook excludes them. They
// wait for a server that hangs as shortly as the API server permits, since a namespace has
// thousands of objects, and none of these writes is denied.
func (c Configuration) systemWrites(resources []Resource) webhook {
	hook := c.optionalWebhook("system", rules(resources, existing...), condition("of-the-system", systemWriteCondition))
	hook.TimeoutSeconds = new(int32(1))
	return hook
}

// notSystemWrite is the condition of the webhooks that exclude system writes.
func notSystemWrite() admissionregistrationv1.MatchCondition {
	return condition("not-of-the-system", "!("+systemWriteCondition+")")
}

// systemWriteCondition is the condition of system writes. It is narrow, since these are
// admitted without evaluation if no server answers: whatever can affect effective
// policies has to stay as it is. SystemWrite is the same in Go.
var systemWriteCondition = fmt.Sprintf("request.operation == 'DELETE' && (%s && has(oldObject.metadata.namespace) || %s && has(oldObject.metadata.ownerReferences)) || "+
	"request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && %s && %s && %s",
	userIn(namespaceUsers...), userIn(gcUsers...), unchangedExcept("", mutableFields...), unchangedExcept(".metadata", mutableMetadata...), noNewOwnerCondition)

// Fields that may change in an object that is being deleted; owners may only be removed.
var (
	mutableFields   = []string{"metadata", "status"}
	mutableMetadata = []string{"finalizers", "generation", "managedFields", "ownerReferences", "resourceVersion"}
)

// noNewOwnerCondition holds if an object has no owner that it did not have before
// (guard.NewOwners): the garbage collector updates and removes existing ones. Looking up
// each among all is quadratic, and a write whose condition exceeds the cost budget of
// matchConditions is always denied: beyond maxOwnerPairs the owners have to be the same.
var noNewOwnerCondition = fmt.Sprintf("(!has(object.metadata.ownerReferences) || has(oldObject.metadata.ownerReferences) && "+
	"(object.metadata.ownerReferences == oldObject.metadata.ownerReferences || "+
	"object.metadata.ownerReferences.size() * oldObject.metadata.ownerReferences.size() <= %d && "+
	"object.metadata.ownerReferences.all(o, oldObject.metadata.ownerReferences.exists(w, "+
	"o.uid == w.uid && o.apiVersion == w.apiVersion && o.kind == w.kind && o.name == w.name))))", maxOwnerPairs)

// maxOwnerPairs are the pairs of 50 owners with 50: a few percent of the cost budget.
const maxOwnerPairs = 2500

// Kinds of system writes, as SystemWrite returns them.
const (
	systemDelete = "garbage collection or namespace deletion"
	systemUpdate = "the object is being deleted and nothing else changes"
)

// SystemWrite returns what kind of system write a request is, "" if it does not meet
// systemWriteCondition. A request that cannot be read does not.
func SystemWrite(r *admissionv1.AdmissionRequest) string {
	before, oldMeta := splitObject(r.OldObject.Raw)
	has := func(name string) bool { return oldMeta[name] != nil }
	user := r.UserInfo.Username
	switch r.Operation {
	case admissionv1.Delete:
		if has("namespace") && slices.Contains(namespaceUsers, user) || has("ownerReferences") && slices.Contains(gcUsers, user) {
			return systemDelete
		}
	case admissionv1.Update:
		after, newMeta := splitObject(r.Object.Raw)
		if has("deletionTimestamp") && noNewOwner(newMeta["ownerReferences"], oldMeta["ownerReferences"]) &&
			sameExcept(after, before, mutableFields) && sameExcept(newMeta, oldMeta, mutableMetadata) {
			return systemUpdate
		}
	default: // other operations are not system writes
	}
	return ""
}

// jsonFields are the undecoded fields of a JSON object. The API server writes equal values
// as equal bytes.
type jsonFields map[string]json.RawMessage

// splitObject returns the fields of an object and of its metadata, none if it cannot be
// read.
func splitObject(object []byte) (all, metadata jsonFields) {
	if json.Unmarshal(object, &all) != nil || json.Unmarshal(all["metadata"], &metadata) != nil {
		return nil, nil
	}
	return all, metadata
}

// sameExcept reports whether all fields are the same except for some.
func sameExcept(after, before jsonFields, except []string) bool {
	excluded := func(name string, _ json.RawMessage) bool { return slices.Contains(except, name) }
	maps.DeleteFunc(after, excluded)
	maps.DeleteFunc(before, excluded)
	return maps.EqualFunc(after, before, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// noNewOwner is noNewOwnerCondition for two lists of owners, which may be absent.
func noNewOwner(after, before []byte) bool {
	if after == nil || bytes.Equal(after, before) {
		return true
	}
	var n, w []metav1.OwnerReference
	if json.Unmarshal(after, &n) != nil || json.Unmarshal(before, &w) != nil {
		return false
	}
	return len(n)*len(w) <= maxOwnerPairs && guard.NewOwners(w, n) == ""
}
