package audit

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
)

const (
	// action is what an Event says was done.
	action = "Sweep"
	// mostTold is how many violations of one sweep are told of one by one, in
	// Events and in the log.
	mostTold = 20
)

// Recorder records Kubernetes Events without making its caller wait, as that of
// a controller-runtime manager does.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Locate returns a complete reference to an object, with the uid by which
// "kubectl describe" finds its Events.
type Locate func(ctx context.Context, ref api.Ref) (*corev1.ObjectReference, error)

// tell logs what is new and what is gone, and has Events made of what is new
// since the first sweep.
func (s *Sweeper) tell(ctx context.Context, fresh, gone []api.Violation, first bool) {
	s.log("violation", fresh)
	s.log("violation resolved", gone)
	if first || s.Events == nil || !s.leads() {
		return
	}
	for i, v := range fresh[:min(len(fresh), mostTold)] {
		about := s.regarding(ctx, subject(v.Path))
		if about == nil {
			continue
		}
		text := v.Message
		if more := len(fresh) - mostTold; i == mostTold-1 && more > 0 {
			text = fmt.Sprintf("(and %d more violations) %s", more, text)
		}
		s.Events.Eventf(about, nil, corev1.EventTypeWarning, string(v.Code), action, "%s", guard.EventNote(text))
	}
}

func (s *Sweeper) leads() bool {
	select {
	case <-s.Leading:
		return true
	default:
		return false
	}
}

func (s *Sweeper) log(what string, all []api.Violation) {
	for i, v := range all {
		if i == mostTold {
			s.Log.Info(what, "more", len(all)-i)
			return
		}
		s.Log.Info(what, "reason", v.Code, "action", v.Action, "policyKind", v.PolicyKind.String(),
			"path", text(v.Path), "rule", v.Rule, "message", v.Message)
	}
}

func text(path []api.PathElement) string {
	names := make([]string, len(path))
	for i, e := range path {
		names[i] = e.String()
	}
	return strings.Join(names, " > ")
}

// subject returns the object that a path is about: its route, or where it ends
// above one, its service, listener set or gateway.
func subject(path []api.PathElement) api.Ref {
	var out api.Ref
	for _, e := range path {
		ref := api.Ref{Group: gateway.KindOf(e.Kind).Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
		switch {
		case gateway.IsRoute(ref.PolicyKind()):
			return ref
		case e.Kind == gateway.KindGateway, e.Kind == gateway.KindListenerSet, e.Kind == gateway.KindXListenerSet:
			out = ref
		case e.Kind == gateway.KindService:
			ref.Group = ""
			out = ref
		}
	}
	return out
}

// regarding returns a reference for an Event, nil where there is no object. One
// that cannot be located is named all the same.
func (s *Sweeper) regarding(ctx context.Context, ref api.Ref) *corev1.ObjectReference {
	if ref.Name == "" {
		return nil
	}
	if s.Locate != nil {
		about, err := s.Locate(ctx, ref)
		if err == nil {
			return about
		}
		s.Log.V(1).Info("an object of an Event cannot be located", "object", ref.String(), "cause", err.Error())
	}
	version := "v1"
	if ref.Group != "" {
		version = ref.Group + "/v1"
	}
	return &corev1.ObjectReference{APIVersion: version, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}
