package webhook

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

// Why a write is spared.
const (
	sparedDeletion = "the system deletes it"
	sparedEdit     = "it is being deleted, and stays what it is until then"
)

// spared lets a write pass that meets ofSystem and was denied since it could not
// be judged: its entry passes over a server that is gone, but an answer is none
// of that, and a controller would ask again for ever. What was in the way is
// recorded. A deletion that was judged is denied as it is judged.
func (s *Server) spared(r *admissionv1.AdmissionRequest, a answer) answer {
	judged := a.judged && a.reason != string(api.ReasonTooMuch)
	// What another version does not have is missing in both of its objects.
	if a.reason == "" || judged && (r.Operation == admissionv1.Delete || otherVersion(r)) {
		return a
	}
	why := ofTheSystem(r)
	if why == "" {
		return a
	}
	s.Log.Info("not denied", "why", why, "reason", a.reason, "uid", r.UID, "operation", r.Operation,
		"kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name)
	said := a.message
	if prefix := a.reason + ": "; !strings.HasPrefix(said, prefix) {
		said = prefix + said
	}
	a.annotate("audit", said+" (not denied: "+why+")")
	delete(a.AuditAnnotations, "denied")
	delete(a.AuditAnnotations, "would-deny")
	a.Allowed, a.Result, a.Warnings, a.reason, a.again = true, nil, nil, "", false
	return a
}

// parts are the fields of a JSON object, unread: the API server writes what is the
// same in the same bytes.
type parts map[string]json.RawMessage

// ofTheSystem says why a request meets ofSystem, "" if it does not. What cannot
// be read does not.
func ofTheSystem(r *admissionv1.AdmissionRequest) string {
	was, oldMeta := partsOf(r.OldObject.Raw)
	has := func(name string) bool { return oldMeta[name] != nil }
	user := r.UserInfo.Username
	switch r.Operation {
	case admissionv1.Delete:
		if has("namespace") && slices.Contains(emptiers, user) || has("ownerReferences") && slices.Contains(collectors, user) {
			return sparedDeletion
		}
	case admissionv1.Update:
		now, newMeta := partsOf(r.Object.Raw)
		if has("deletionTimestamp") && noOtherOwner(newMeta["ownerReferences"], oldMeta["ownerReferences"]) &&
			same(now, was, freeFields) && same(newMeta, oldMeta, freeMetadata) {
			return sparedEdit
		}
	default: // nothing else is of the system
	}
	return ""
}

// partsOf returns those of an object and of its metadata, none of what
// cannot be read.
func partsOf(object []byte) (all, metadata parts) {
	if json.Unmarshal(object, &all) != nil || json.Unmarshal(all["metadata"], &metadata) != nil {
		return nil, nil
	}
	return all, metadata
}

// same reports whether all fields are the same but for those that are free.
func same(now, was parts, free []string) bool {
	isFree := func(name string, _ json.RawMessage) bool { return slices.Contains(free, name) }
	maps.DeleteFunc(now, isFree)
	maps.DeleteFunc(was, isFree)
	return maps.EqualFunc(now, was, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// noOtherOwner is noNewOwner of two lists of owners, which may be absent.
func noOtherOwner(now, was []byte) bool {
	if now == nil || bytes.Equal(now, was) {
		return true
	}
	var n, w []metav1.OwnerReference
	if json.Unmarshal(now, &n) != nil || json.Unmarshal(was, &w) != nil {
		return false
	}
	return len(n)*len(w) <= mostPairs && guard.NewOwners(w, n) == ""
}
