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

// FieldManager owns the marks that are written here.
const FieldManager = "overrule-refresh"

// APIServer is a Cluster behind an API server.
type APIServer struct {
	// Client and Rights speak as User, whose rights are those of refreshing alone.
	Client dynamic.Interface
	Rights authorizationv1client.SelfSubjectAccessReviewsGetter
	User   string
	// ServedResource returns where the objects of a kind are, in a version that is served.
	ServedResource func(api.PolicyKind) (schema.GroupVersionResource, bool)
}

// object is one object there.
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
		return 0, ErrGone // with its kind
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

// configuration is what is applied: the object's identity, and what is put in. With
// its uid it never makes an object, nor finds one of the same name that came after.
func (o object) applyConfiguration() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(o.resource.GroupVersion().WithKind(o.Kind))
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	u.SetUID(o.uid)
	return u
}

var applyOptions = metav1.ApplyOptions{FieldManager: FieldManager, Force: true}

// annotate applies annotations. One that is not wanted any more and that somebody
// else owns, too, as whoever made the object does with what admission added, stays
// when it is left out: it is taken over first. An empty one asks the mutating webhook
// what there is to say, which is nothing.
func (o object) applyAnnotations(ctx context.Context, annotations map[string]string) (uint64, error) {
	has, err := o.apply(ctx, annotations)
	if err != nil {
		return 0, err
	}
	rest := make(map[string]string, len(annotations))
	maps.Copy(rest, annotations)
	for name, text := range has {
		if _, wanted := annotations[name]; !wanted && text != "" && api.IsMark(name) {
			rest[name] = ""
		}
	}
	if len(rest) == len(annotations) {
		return snapshot.MarksHash(has, nil), nil
	}
	if _, err := o.apply(ctx, rest); err != nil {
		return 0, err
	}
	has, err = o.apply(ctx, annotations)
	return snapshot.MarksHash(has, nil), err
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

// condition applies conditions to the status, each with the time since when it is as
// it is. One that somebody else owns, too, cannot be taken away: it says False.
func (o object) applyConditions(ctx context.Context, w *DesiredMarks) (uint64, error) {
	live, err := o.client().Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return 0, o.wrapError(ctx, "get", "", err)
	}
	if live.GetUID() != o.uid {
		return 0, ErrGone
	}
	has, err := conditionsOf(live)
	if err != nil {
		return 0, err
	}
	want := slices.Clone(w.Conditions)
	for i := range want {
		want[i].LastTransitionTime = metav1.Now()
		if old := meta.FindStatusCondition(has, want[i].Type); old != nil && old.Status == want[i].Status {
			want[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	if has, err = o.applyStatus(ctx, want); err != nil {
		return 0, err
	}
	rest := slices.Clone(want)
	for _, c := range has {
		if c.Status == metav1.ConditionTrue && api.IsAffected(c.Type) && meta.FindStatusCondition(want, c.Type) == nil {
			c.Status, c.Reason, c.Message, c.LastTransitionTime = metav1.ConditionFalse, "NotAffected", "no policy of this kind is in force", metav1.Now()
			rest = append(rest, c)
		}
	}
	if len(rest) > len(want) {
		if has, err = o.applyStatus(ctx, rest); err != nil {
			return 0, err
		}
	}
	return snapshot.MarksHash(nil, has), nil
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

// failed says what an error comes to: a right that is missing for the whole kind is
// told apart from a denial of this one write by asking for it.
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
	got, asked := o.Rights.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if asked == nil && got.Status.Allowed {
		return fmt.Errorf("%s %s: %w", verb, o.Ref, err) // so it is something else
	}
	return &RightError{User: o.User, Verb: verb, Resource: resource, Cause: err}
}
