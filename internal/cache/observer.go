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

// origin says which state of which object was read.
type objectState struct {
	name    cache.ObjectName
	uid     types.UID
	version string
	marks   snapshot.Marks
}

// originOf has only the name where nothing else is known, as of an object that
// is missing in a list.
func stateOf(name cache.ObjectName, obj any) objectState {
	out := objectState{name: name}
	if m, err := meta.Accessor(obj); err == nil {
		out.uid, out.version = m.GetUID(), m.GetResourceVersion()
		out.marks = snapshot.MarksOf(m, conditions(obj))
	}
	return out
}

// conditions returns those of a status that has them for the object as a whole.
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

// seen tells a store what was seen of a kind. The zero value tells nobody.
type observer struct {
	store *snapshot.Store
	kind  api.PolicyKind
}

// reached tells the store of a version before it gets what has that version,
// and passed of one that brings nothing.
func (s observer) reached(version string) {
	if s.store != nil {
		s.store.Reached(version)
	}
}

func (s observer) passed(version string) {
	if s.store != nil {
		s.store.Passed(version)
	}
}

func (s observer) observed(all ...objectState) { s.notify(all, false) }

func (s observer) deleted(o objectState) { s.notify([]objectState{o}, true) }

func (s observer) notify(all []objectState, deleted bool) {
	if s.store == nil {
		return
	}
	out := make([]snapshot.Observation, len(all))
	for i, o := range all {
		ref := api.Ref{Group: s.kind.Group, Kind: s.kind.Kind, Namespace: o.name.Namespace, Name: o.name.Name}
		out[i] = snapshot.Observation{Ref: ref, UID: o.uid, Version: o.version, Deleted: deleted, Marks: o.marks}
	}
	s.store.Observe(out...)
}
