package cache

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// objectState identifies the state of an object that was read.
type objectState struct {
	name    cache.ObjectName
	uid     types.UID
	version string
	marks   snapshot.Marks
}

// stateOf returns only the name if nothing else is known, for example for an object
// that is missing from a list.
func stateOf(name cache.ObjectName, obj any) objectState {
	out := objectState{name: name}
	if m, err := meta.Accessor(obj); err == nil {
		out.uid, out.version = m.GetUID(), m.GetResourceVersion()
		out.marks = snapshot.MarksOf(m, conditions(obj))
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

// observer reports to a store what was read of a kind. The zero value does nothing.
type observer struct {
	store *snapshot.Store
	kind  api.PolicyKind
}

// reached reports a resource version before the store receives the objects of that
// version, and passed one without objects.
func (obs observer) reached(version string) {
	if obs.store != nil {
		obs.store.Reached(version)
	}
}

func (obs observer) passed(version string) {
	if obs.store != nil {
		obs.store.Passed(version)
	}
}

func (obs observer) observed(all ...objectState) { obs.notify(all, false) }

func (obs observer) deleted(o objectState) { obs.notify([]objectState{o}, true) }

func (obs observer) notify(all []objectState, deleted bool) {
	if obs.store == nil {
		return
	}
	out := make([]snapshot.Observation, len(all))
	for i, o := range all {
		ref := api.Ref{Group: obs.kind.Group, Kind: obs.kind.Kind, Namespace: o.name.Namespace, Name: o.name.Name}
		out[i] = snapshot.Observation{Ref: ref, UID: o.uid, Version: o.version, Deleted: deleted, Marks: o.marks}
	}
	obs.store.Observe(out...)
}
