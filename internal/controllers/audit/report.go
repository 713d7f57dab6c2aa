package audit

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
)

const (
	// action is the action of an Event.
	action = "Audit"
	// maxReported is the maximum number of violations of one run that get a log line
	// or an Event each.
	maxReported = 20
)

// Locate returns a complete reference to an object, including the uid that "kubectl
// describe" finds Events by.
type Locate func(ctx context.Context, ref api.Ref) (*corev1.ObjectReference, error)

// report logs new and resolved violations, and records Events for new ones after the
// first run.
func (a *Auditor) report(ctx context.Context, added, resolved []api.Violation, first bool) {
	a.logViolations("violation", added)
	a.logViolations("violation resolved", resolved)
	if first || a.opts.Events == nil || !a.opts.Leading() {
		return
	}
	for i, v := range added[:min(len(added), maxReported)] {
		about := a.eventObject(ctx, subject(v.Path))
		if about == nil {
			continue
		}
		text := v.Message
		if more := len(added) - maxReported; i == maxReported-1 && more > 0 {
			text = fmt.Sprintf("(and %d more violations) %s", more, text)
		}
		a.opts.Events.Eventf(about, nil, corev1.EventTypeWarning, string(v.Code), action, "%s", guard.EventNote(text))
	}
}

func (a *Auditor) logViolations(what string, all []api.Violation) {
	for i, v := range all {
		if i == maxReported {
			a.opts.Log.Info(what, "more", len(all)-i)
			return
		}
		a.opts.Log.Info(what, "reason", v.Code, "action", v.Action, "policyKind", v.PolicyKind.String(),
			"path", pathText(v.Path), "rule", v.Rule, "message", v.Message)
	}
}

func pathText(path []api.PathElement) string {
	names := make([]string, len(path))
	for i, e := range path {
		names[i] = e.String()
	}
	return strings.Join(names, " > ")
}

// subject returns the object that a path is about: its route, or for a path without one
// its service, listener set or gateway.
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

// eventObject returns a reference for an Event, nil if there is no object. If the
// object cannot be located, the reference has only its name.
func (a *Auditor) eventObject(ctx context.Context, ref api.Ref) *corev1.ObjectReference {
	if ref.Name == "" {
		return nil
	}
	if a.opts.Locate != nil {
		about, err := a.opts.Locate(ctx, ref)
		if err == nil {
			return about
		}
		a.opts.Log.V(1).Info("cannot locate object of Event", "object", ref.String(), "cause", err.Error())
	}
	version := "v1"
	if ref.Group != "" {
		version = ref.Group + "/v1"
	}
	return &corev1.ObjectReference{APIVersion: version, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}
