package webhook

import (
	"cmp"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
)

// EventRecorder records Kubernetes Events without blocking its caller, as that of a
// controller-runtime manager does, which also aggregates repeated Events.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

const (
	// eventAction is the action of the Events of denials.
	eventAction = "Admit"
	// eventRate is the maximum number of Events per second after a burst of
	// eventBurst: a client can cause an Event for each name that it makes up.
	eventRate, eventBurst = 10, 50
)

// recordDenial records an Event for a denial, unless the write is a dry run or is to be
// retried.
func (s *Server) recordDenial(r *admissionv1.AdmissionRequest, resp response) {
	if s.opts.Events == nil || resp.reason == "" || resp.retry || isDryRun(r) {
		return
	}
	about := regarding(r, resp)
	if about == nil || !s.events.TryAccept() {
		s.opts.Log.V(1).Info("no Event for a denial", "uid", r.UID, "reason", resp.reason)
		return
	}
	note := resp.message
	if resp.Allowed {
		note = wouldBeDenied + note
	}
	s.opts.Events.Eventf(about, nil, corev1.EventTypeWarning, resp.reason, eventAction, "%s", guard.EventNote(note))
}

// regarding returns the object of a write. If it has no name, because the write could
// not be decoded, it returns the namespace; nil if there is none either.
func regarding(r *admissionv1.AdmissionRequest, resp response) *corev1.ObjectReference {
	about := &corev1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: r.Kind.Group, Version: r.Kind.Version}.String(), Kind: r.Kind.Kind,
		Namespace: r.Namespace, Name: cmp.Or(resp.object.Name, r.Name), UID: metadataOf(r.OldObject.Raw).UID,
	}
	switch {
	case r.Kind.Group == "" && r.Kind.Kind == gateway.KindNamespace:
		about.Namespace = "" // in requests for namespaces this is the name
	case about.Name == "" && r.Namespace == "":
		return nil
	case about.Name == "":
		return &corev1.ObjectReference{APIVersion: "v1", Kind: gateway.KindNamespace, Namespace: r.Namespace, Name: r.Namespace}
	}
	return about
}
