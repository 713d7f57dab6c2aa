package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaunstructured "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	api "overrule.dev/overrule/api/v1alpha1"
)

// reviewResource is the resource of EffectivePolicyReviews.
var reviewResource = schema.GroupVersionResource{Group: api.Group, Version: "v1alpha1", Resource: "effectivepolicyreviews"}

// Errors of reviews.
var (
	errNoReviews = errors.New("this version of Overrule has no EffectivePolicyReviews, or it is not installed")
	errNoAnswer  = errors.New("overrule does not run: its webhook did not answer")
)

// review asks Overrule about an object with the rights of the user, where these are not
// enough to list the cluster: cause is the error of that. It returns cause if that is
// another error, or if no object of a cluster is named.
func (a *app) review(cause error, f queryFlags, args []string, parts ...api.ReviewPart) (*reviewed, error) {
	switch {
	case !errors.Is(cause, errReadCluster) || !apierrors.IsForbidden(cause):
		return nil, cause
	case len(args) == 0 || f.allNamespaces:
		return nil, fmt.Errorf("%w; or name an object of one namespace, such as httproute/NAME, to ask Overrule about it", cause)
	}
	r, err := a.newReview(f, args)
	if err != nil {
		return nil, fmt.Errorf("%w (the rights to list the cluster are missing, too: %w)", err, cause)
	}
	r.spec.Parts = parts
	a.infof("note: you are not allowed to list the objects of all namespaces; asked Overrule in namespace %s: values of policies that you are not allowed to read are redacted", r.namespace)
	return r, nil
}

// reviewed is a review of one object.
type reviewed struct {
	app       *app
	namespace string
	spec      api.ReviewSpec
}

// newReview returns a review of the object that the arguments name.
func (a *app) newReview(f queryFlags, args []string) (*reviewed, error) {
	word, name, _, err := parseObject(args)
	if err != nil {
		return nil, err
	}
	mapper, err := a.config.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("discover the resources of the cluster: %w", err)
	}
	r := &reviewed{app: a}
	if r.namespace, _, err = a.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("read the namespace from the kubeconfig: %w", err)
	}
	kind, err := kindOfResource(mapper, word)
	if err != nil {
		return nil, err
	}
	r.spec.Object = api.ReviewObject{Group: kind.Group, Kind: kind.Kind, Name: name}
	for _, word := range f.kinds {
		k, err := kindOfResource(mapper, word)
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
func (r *reviewed) ref() api.Ref {
	return api.Ref{Group: r.spec.Object.Group, Kind: r.spec.Object.Kind, Namespace: r.namespace, Name: r.spec.Object.Name}
}

// ask returns the answer, and prints what it leaves out.
func (r *reviewed) ask(ctx context.Context) (*api.ReviewStatus, error) {
	config, err := r.app.clusterConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.spec)
	if err != nil {
		return nil, fmt.Errorf("encode the review: %w", err)
	}
	review := &metaunstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.APIVersion, "kind": api.KindEffectivePolicyReview, "metadata": map[string]any{"name": "kubectl-overrule"}, "spec": spec,
	}}
	answer, err := client.Resource(reviewResource).Namespace(r.namespace).Create(ctx, review, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, r.askError(err)
	}
	status, err := statusOf(answer)
	if err != nil {
		return nil, err
	}
	if t := status.Truncated; t != nil {
		r.app.warnf("left out %d effective policies, %d outcomes, %d explanations, %d policies that affect the object: name a policy kind with --kind, a rule, or an object with fewer paths", t.Items, t.Outcomes, t.Explanations, t.Reaches)
	}
	return status, nil
}

// statusOf returns the answer in a review.
func statusOf(answer *metaunstructured.Unstructured) (*api.ReviewStatus, error) {
	content, ok := answer.Object["status"]
	if !ok {
		return nil, errNoAnswer
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	var status api.ReviewStatus
	if err := json.Unmarshal(data, &status); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return &status, nil
}

const (
	reviewDenial = `admission webhook "review.overrule.dev" denied the request: `
	reviewPolicy = "ValidatingAdmissionPolicy 'overrule-reviews'"
)

// askError returns the error of a review that was not answered. A denial is the message of
// Overrule.
func (r *reviewed) askError(err error) error {
	_, denial, denied := strings.Cut(err.Error(), reviewDenial)
	switch {
	case denied && strings.Contains(denial, errNotFound.Error()):
		return notFoundError(denial)
	case denied:
		return errors.New(denial)
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
