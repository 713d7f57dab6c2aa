package annotations

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	api "overrule.dev/overrule/api/v1alpha1"
)

// FieldManager is the field manager of all marks that a Controller writes.
const FieldManager = "overrule-refresh"

// APIServer is where marks are written.
type APIServer struct {
	// Client acts as the ServiceAccount that is allowed to write marks.
	Client dynamic.Interface
	// ServedResource returns the resource of a kind in a served version.
	ServedResource func(api.PolicyKind) (schema.GroupVersionResource, bool)
}

// object is an object on the API server.
type object struct {
	dynamic.ResourceInterface

	name string
	uid  types.UID
}

// fields are fields of an object in a merge patch.
type fields map[string]any

// Write implements Options.Write.
func (a *APIServer) Write(ctx context.Context, ref api.Ref, uid types.UID, want *Marks) (err error) {
	resource, ok := a.ServedResource(ref.PolicyKind())
	if !ok {
		return nil
	}
	o := object{a.Client.Resource(resource).Namespace(ref.Namespace), ref.Name, uid}
	if hasConditions(ref.PolicyKind()) {
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { return o.patchConditions(ctx, want.Conditions) })
	} else {
		err = o.patchAnnotations(ctx, want.Annotations)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// patch sends a merge patch. The uid prevents that another object of the name is changed.
func (o object) patch(ctx context.Context, body map[string]fields, subresources ...string) (*unstructured.Unstructured, error) {
	body["metadata"]["uid"] = o.uid
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return o.Patch(ctx, o.name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: FieldManager}, subresources...)
}

// patchAnnotations sets annotations, and removes the others of Overrule.
func (o object) patchAnnotations(ctx context.Context, want map[string]string) error {
	set, remove := fields{}, fields{}
	for name, text := range want {
		set[name] = text
	}
	got, err := o.patch(ctx, map[string]fields{"metadata": {"annotations": set}})
	if err != nil {
		return err
	}
	for name := range got.GetAnnotations() {
		if _, wanted := want[name]; !wanted && api.IsOwnAnnotation(name) {
			remove[name] = nil
		}
	}
	if len(remove) > 0 {
		_, err = o.patch(ctx, map[string]fields{"metadata": {"annotations": remove}})
	}
	return err
}

// patchConditions sets conditions, and removes the others of Overrule. The transition
// times of unchanged ones stay.
func (o object) patchConditions(ctx context.Context, want []metav1.Condition) error {
	live, err := o.Get(ctx, o.name, metav1.GetOptions{})
	if err != nil || live.GetUID() != o.uid {
		return err
	}
	var has struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &has); err != nil {
		return fmt.Errorf("read the conditions: %w", err)
	}
	conditions := slices.DeleteFunc(has.Status.Conditions, func(c metav1.Condition) bool {
		return api.IsAffected(c.Type) && meta.FindStatusCondition(want, c.Type) == nil
	})
	for _, c := range want {
		meta.SetStatusCondition(&conditions, c)
	}
	_, err = o.patch(ctx, map[string]fields{"metadata": {"resourceVersion": live.GetResourceVersion()}, "status": {"conditions": conditions}}, "status")
	return err
}
