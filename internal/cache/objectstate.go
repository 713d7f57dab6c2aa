package cache

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// stateOf returns the state of an object that was read: only its name if nothing else is
// known, for example for an object that is missing from a list.
func (s *sink) stateOf(name cache.ObjectName, obj any) snapshot.Observation {
	out := snapshot.Observation{Ref: refOf(s.kind, name)}
	if m, err := meta.Accessor(obj); err == nil {
		out.UID, out.Version, out.Marks = m.GetUID(), m.GetResourceVersion(), snapshot.MarksOf(m, conditions(obj))
	}
	return out
}

// conditions returns the status conditions of kinds that have them for the whole
// object.
func conditions(obj any) []metav1.Condition {
	switch o := obj.(type) {
	case *gatewayv1.GatewayClass:
		return o.Status.Conditions
	case *gatewayv1.Gateway:
		return o.Status.Conditions
	case *gatewayv1.ListenerSet:
		return o.Status.Conditions
	default:
		return nil
	}
}

// refOf returns the reference to the object of a kind and a name.
func refOf(kind api.PolicyKind, name cache.ObjectName) api.Ref {
	return api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: name.Namespace, Name: name.Name}
}
