package webhook

import (
	"cmp"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
)

// EventRecorder records Kubernetes Events without making its caller wait, as that of
// a controller-runtime manager does: it sums up what is told again and again.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

const (
	// action is what an Event says was done.
	eventAction = "Admit"
	// eventRate is the most Events in a second, once eventBurst were told at
	// once: each name that is made up to be denied is an Event of its own.
	eventRate, eventBurst = 10, 50
)

// record tells of a denial in an Event, never of one of a dry run, nor of a
// write that is only to be tried again.
func (s *Server) recordDenial(r *admissionv1.AdmissionRequest, a response) {
	if s.Events == nil || a.reason == "" || a.retry || r.DryRun != nil && *r.DryRun {
		return
	}
	about := regarding(r, a)
	if about == nil || !s.events.TryAccept() {
		s.Log.V(1).Info("no Event of a denial", "uid", r.UID, "reason", a.reason)
		return
	}
	text := a.message
	if a.Allowed {
		text = "would be denied: " + text
	}
	s.Events.Eventf(about, nil, corev1.EventTypeWarning, a.reason, eventAction, "%s", guard.EventNote(text))
}

// regarding names the object of a write. One that has no name, since the write
// could not be read, has its Event at its namespace; nil if it has none either.
func regarding(r *admissionv1.AdmissionRequest, a response) *corev1.ObjectReference {
	about := &corev1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: r.Kind.Group, Version: r.Kind.Version}.String(), Kind: r.Kind.Kind,
		Namespace: r.Namespace, Name: cmp.Or(a.object.Name, r.Name), UID: uidOf(r.OldObject.Raw),
	}
	switch {
	case r.Kind.Group == "" && r.Kind.Kind == gateway.KindNamespace:
		about.Namespace = "" // requests of namespaces name themselves there
	case about.Name == "" && r.Namespace == "":
		return nil
	case about.Name == "":
		return &corev1.ObjectReference{APIVersion: "v1", Kind: gateway.KindNamespace, Namespace: r.Namespace, Name: r.Namespace}
	}
	return about
}

// uidOf returns the uid of a stored object, by which "kubectl describe" finds
// its Events. An object that was never stored has none to be found by.
func uidOf(data []byte) types.UID {
	var o struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &o) != nil {
		return ""
	}
	return o.Metadata.UID
}
