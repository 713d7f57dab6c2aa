package gateway

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// RouteObjectList is a list of routes of one kind.
type RouteObjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []RouteObject `json:"items"`
}

func (o *RouteObject) copy() *RouteObject {
	out := &RouteObject{TypeMeta: o.TypeMeta, Spec: slices.Clone(o.Spec)}
	o.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject implements runtime.Object.
func (o *RouteObject) DeepCopyObject() runtime.Object { return o.copy() }

// DeepCopyObject implements runtime.Object.
func (l *RouteObjectList) DeepCopyObject() runtime.Object {
	out := &RouteObjectList{TypeMeta: l.TypeMeta, Items: make([]RouteObject, len(l.Items))}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items[i] = *l.Items[i].copy()
	}
	return out
}

// RouteObject is a route of any kind as the API server returns it. Its spec is raw
// JSON: profiles refer to fields that are not known in advance.
type RouteObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec json.RawMessage `json:"spec,omitempty"`
}
