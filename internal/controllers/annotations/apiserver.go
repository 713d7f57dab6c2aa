package annotations

import (
	"context"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// FieldManager is the field manager of all marks that a Controller writes.
const FieldManager = "overrule-refresh"

// APIServer implements Cluster with an API server.
type APIServer struct {
	// Client and Rights act as User, which has only the permissions of the annotations
	// controller.
	Client dynamic.Interface
	Rights authorizationv1client.SelfSubjectAccessReviewsGetter
	User   string
	// ServedResource returns the resource of a kind in a served version.
	ServedResource func(api.PolicyKind) (schema.GroupVersionResource, bool)
}

// object is an object on the API server.
type object struct {
	*APIServer
	api.Ref
	uid      types.UID
	resource schema.GroupVersionResource
}

// Write implements Cluster.
func (a *APIServer) Write(ctx context.Context, ref api.Ref, uid types.UID, w *DesiredMarks) (uint64, error) {
	at, ok := a.ServedResource(ref.PolicyKind())
	if !ok {
		return 0, ErrGone // its kind is not served
	}
	o := object{a, ref, uid, at}
	if hasConditions(ref.PolicyKind()) {
		return o.applyConditions(ctx, w)
	}
	return o.applyAnnotations(ctx, w.Annotations)
}

func (o object) client() dynamic.ResourceInterface {
	if o.Namespace == "" {
		return o.Client.Resource(o.resource)
	}
	return o.Client.Resource(o.resource).Namespace(o.Namespace)
}

// applyConfiguration returns the identity of the object, to be completed for
// server-side apply. The uid prevents that an object is created, or that one with the
// same name that was created later is changed.
func (o object) applyConfiguration() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(o.resource.GroupVersion().WithKind(o.Kind))
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	u.SetUID(o.uid)
	return u
}

var applyOptions = metav1.ApplyOptions{FieldManager: FieldManager, Force: true}

// applyAnnotations applies annotations. An annotation that is no longer wanted and that
// another field manager owns, too, for example the client that created the object,
// would remain when it is omitted. It is first applied with an empty value, to take
// over its ownership: the mutating webhook then computes it, and removes it.
func (o object) applyAnnotations(ctx context.Context, annotations map[string]string) (uint64, error) {
	current, err := o.apply(ctx, annotations)
	if err != nil {
		return 0, err
	}
	withEmpty := make(map[string]string, len(annotations))
	maps.Copy(withEmpty, annotations)
	for name, text := range current {
		if _, wanted := annotations[name]; !wanted && text != "" && api.IsOwnAnnotation(name) {
			withEmpty[name] = ""
		}
	}
	if len(withEmpty) == len(annotations) {
		return snapshot.MarksHash(current, nil), nil
	}
	if _, err := o.apply(ctx, withEmpty); err != nil {
		return 0, err
	}
	current, err = o.apply(ctx, annotations)
	return snapshot.MarksHash(current, nil), err
}

func (o object) apply(ctx context.Context, annotations map[string]string) (map[string]string, error) {
	u := o.applyConfiguration()
	u.SetAnnotations(annotations)
	got, err := o.client().Apply(ctx, o.Name, u, applyOptions)
	if err != nil {
		return nil, o.wrapError(ctx, "patch", "", err)
	}
	return got.GetAnnotations(), nil
}

// applyConditions applies conditions to the status, and keeps the transition times of
// unchanged ones. A condition that another field manager owns, too, cannot be removed:
// it is set to False.
func (o object) applyConditions(ctx context.Context, marks *DesiredMarks) (uint64, error) {
	live, err := o.client().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return 0, o.wrapError(ctx, "get", "", err)
	}
	if live.GetUID() != o.uid {
		return 0, ErrGone
	}
	current, err := conditionsOf(live)
	if err != nil {
		return 0, err
	}
	want := slices.Clone(marks.Conditions)
	for i := range want {
		want[i].LastTransitionTime = metav1.Now()
		if old := meta.FindStatusCondition(current, want[i].Type); old != nil && old.Status == want[i].Status {
			want[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	if current, err = o.applyStatus(ctx, want); err != nil {
		return 0, err
	}
	withFalse := slices.Clone(want)
	for _, c := range current {
		if c.Status == metav1.ConditionTrue && api.IsAffected(c.Type) && meta.FindStatusCondition(want, c.Type) == nil {
			c.Status, c.Reason, c.Message, c.LastTransitionTime = metav1.ConditionFalse, "NotAffected", "no policy of this kind is in force", metav1.Now()
			withFalse = append(withFalse, c)
		}
	}
	if len(withFalse) > len(want) {
		if current, err = o.applyStatus(ctx, withFalse); err != nil {
			return 0, err
		}
	}
	return snapshot.MarksHash(nil, current), nil
}

func (o object) applyStatus(ctx context.Context, conditions []metav1.Condition) ([]metav1.Condition, error) {
	list := make([]any, len(conditions))
	for i := range conditions {
		c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return nil, fmt.Errorf("condition %s of %s: %w", conditions[i].Type, o.Ref, err)
		}
		list[i] = c
	}
	u := o.applyConfiguration()
	u.Object["status"] = map[string]any{"conditions": list}
	got, err := o.client().ApplyStatus(ctx, o.Name, u, applyOptions)
	if err != nil {
		return nil, o.wrapError(ctx, "patch", "status", err)
	}
	return conditionsOf(got)
}

func conditionsOf(u *unstructured.Unstructured) ([]metav1.Condition, error) {
	var out struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
		return nil, fmt.Errorf("read the conditions of %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return out.Status.Conditions, nil
}

// wrapError classifies an error. For a forbidden request, an access review shows
// whether the permission for the kind is missing or only this write was denied.
func (o object) wrapError(ctx context.Context, verb, subresource string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return ErrGone
	case !apierrors.IsForbidden(err):
		return fmt.Errorf("%s %s: %w", verb, o.Ref, err)
	}
	resource := o.resource.GroupResource().String()
	if subresource != "" {
		resource = o.resource.Resource + "/" + subresource + "." + o.resource.Group
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: o.Namespace, Name: o.Name, Verb: verb,
			Group: o.resource.Group, Version: o.resource.Version, Resource: o.resource.Resource, Subresource: subresource,
		},
	}}
	review, reviewErr := o.Rights.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if reviewErr == nil && review.Status.Allowed {
		return fmt.Errorf("%s %s: %w", verb, o.Ref, err) // the permission exists
	}
	return &RightError{User: o.User, Verb: verb, Resource: resource, Cause: err}
}
