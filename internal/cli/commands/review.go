package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaunstructured "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
)

// reviewResource is the resource of EffectivePolicyReviews.
var reviewResource = schema.GroupVersionResource{Group: api.Group, Version: "v1alpha1", Resource: "effectivepolicyreviews"}

// Errors of reviews.
var (
	errNoReviews = errors.New("this version of Overrule has no EffectivePolicyReviews, or it is not installed")
	errNoAnswer  = errors.New("overrule does not run: its webhook did not answer")
)

// review is a question that Overrule answers on a cluster, with the rights of the user.
type review struct {
	*cluster
	namespace string
	spec      api.ReviewSpec
}

// newReview returns the review for a question about an object.
func (c *cluster) newReview(q question) (*review, error) {
	r := &review{cluster: c, namespace: cmp.Or(q.namespace, c.namespace), spec: api.ReviewSpec{Parts: q.parts}}
	if q.maxPaths > 0 {
		r.spec.MaxPaths = new(int32(q.maxPaths)) //nolint:gosec // it is a number of paths on one page
	}
	kind, err := kindOfResource(c.mapper, q.kind)
	if err != nil {
		return nil, err
	}
	r.spec.Object = api.ReviewObject{Group: kind.Group, Kind: kind.Kind, Name: q.name, Section: q.section}
	if q.rule != nil {
		r.spec.Rule = q.rule.String()
	}
	for _, word := range q.kinds {
		k, err := kindOfResource(c.mapper, word)
		if err != nil {
			return nil, fmt.Errorf("invalid --kind: %w", err)
		}
		r.spec.PolicyKinds = append(r.spec.PolicyKinds, k)
	}
	return r, nil
}

// kindOfResource returns the kind of a resource that is named as for kubectl.
func kindOfResource(mapper meta.RESTMapper, word string) (api.PolicyKind, error) {
	resource := schema.ParseGroupResource(strings.ToLower(word))
	kind, err := mapper.KindFor(resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return api.PolicyKind{}, fmt.Errorf("%w: the cluster has no such resource", unknownKind(word))
	}
	if err != nil {
		return api.PolicyKind{}, fmt.Errorf("find the resource %q: %w", word, err)
	}
	return api.PolicyKind{Group: kind.Group, Kind: kind.Kind}, nil
}

// ref returns the object of the review.
func (r *review) ref() api.Ref {
	return api.Ref{Group: r.spec.Object.Group, Kind: r.spec.Object.Kind, Namespace: r.namespace, Name: r.spec.Object.Name}
}

// answer returns the answer.
func (r *review) answer(ctx context.Context) (*api.ReviewStatus, error) {
	document := api.EffectivePolicyReview{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindEffectivePolicyReview}, ObjectMeta: metav1.ObjectMeta{Name: "kubectl-overrule"}, Spec: r.spec,
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&document)
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	answer, err := r.client.Resource(reviewResource).Namespace(r.namespace).Create(ctx, &metaunstructured.Unstructured{Object: content}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, r.answerError(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &document); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if document.Status == nil {
		return nil, errNoAnswer
	}
	return document.Status, nil
}

// reviewPolicy is in the denials of the API server if Overrule did not answer.
const reviewPolicy = "ValidatingAdmissionPolicy 'overrule-reviews'"

// answerError returns the error of a review that was not answered. A denial is the message
// of Overrule.
func (r *review) answerError(err error) error {
	reasons := denialReasons(err)
	switch {
	case len(reasons) > 0 && reasons[0].Code == api.DenialNotFound:
		return notFoundError(reasons[0].Message)
	case len(reasons) > 0:
		return errors.New(reasons[0].Message)
	case strings.Contains(err.Error(), reviewPolicy), strings.Contains(err.Error(), "failed calling webhook"):
		return fmt.Errorf("%w: %s", errNoAnswer, api.RedactToken(err.Error()))
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return fmt.Errorf("%w: ask the cluster administrator for the right to list the cluster, or to install it", errNoReviews)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; ask the cluster administrator for the role view, or overrule-reviews, in namespace %s", err, r.namespace)
	default:
		return fmt.Errorf("ask Overrule about %s: %w", r.ref(), err)
	}
}

// notFoundError is a denial that says that something was not found.
type notFoundError string

// Error returns the message of the denial.
func (e notFoundError) Error() string { return string(e) }

// Is reports whether the target is errNotFound.
func (e notFoundError) Is(target error) bool { return target == errNotFound }
