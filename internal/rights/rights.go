package rights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Verb is the RBAC verb on policies that allows a user to remove or change their
// overrides.
const Verb = "override"

// Resource returns the group and the plural name of a policy kind; the plural is
// empty if the kind is unknown.
type Resource func(api.PolicyKind) (group, plural string)

// Reviewer checks whether users are allowed to remove or change overrides. It is
// safe for concurrent use.
type Reviewer struct {
	resource Resource
	anyUser  bool // the result does not depend on the user
	cache    *reviewCache
}

// New returns a Reviewer that sends SubjectAccessReviews. The client should have a
// rate limit of its own, or none: admission requests wait for the responses. With a
// nil resource, plural names are guessed.
func New(client authorizationv1client.SubjectAccessReviewsGetter, resource Resource) *Reviewer {
	review := func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		request := &authorizationv1.SubjectAccessReview{Spec: spec}
		response, err := client.SubjectAccessReviews().Create(ctx, request, metav1.CreateOptions{})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		return response.Status, nil
	}
	return &Reviewer{resource: resource, cache: newReviewCache(review)}
}

// Self returns a Reviewer that sends SelfSubjectAccessReviews: its results are for
// the user of the client, and the user argument is ignored.
func Self(client authorizationv1client.SelfSubjectAccessReviewsGetter, resource Resource) *Reviewer {
	review := func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		request := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: spec.ResourceAttributes},
		}
		response, err := client.SelfSubjectAccessReviews().Create(ctx, request, metav1.CreateOptions{})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		return response.Status, nil
	}
	return &Reviewer{resource: resource, anyUser: true, cache: newReviewCache(review)}
}

// Fixed returns a Reviewer with the same result for all users, without requests.
func Fixed(allowed bool, resource Resource) *Reviewer {
	review := func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}, nil
	}
	return &Reviewer{resource: resource, anyUser: true, cache: newReviewCache(review)}
}

// MayOverride reports whether a user is allowed to remove or change the overrides of
// a policy. Without a user the result is false. An error means that the review
// failed, so the result is unknown.
func (r *Reviewer) MayOverride(ctx context.Context, user *authenticationv1.UserInfo, policy api.Ref) (bool, error) {
	return r.may(ctx, user, Verb, policy)
}

// MayGet reports whether a user is allowed to get an object, which need not exist. The
// widest right is asked for first: to get all objects of the kind, those of the namespace,
// then this one. Of users with wide rights, few results are cached.
func (r *Reviewer) MayGet(ctx context.Context, user *authenticationv1.UserInfo, object api.Ref) (bool, error) {
	scopes := []api.Ref{{Group: object.Group, Kind: object.Kind}, {Group: object.Group, Kind: object.Kind, Namespace: object.Namespace}, object}
	for _, scope := range slices.Compact(scopes) {
		if may, err := r.may(ctx, user, "get", scope); may || err != nil {
			return may, err
		}
	}
	return false, nil
}

// may reports whether a user has a right on an object: on all of a namespace if it has no
// name, on all of the cluster if it has no namespace either.
func (r *Reviewer) may(ctx context.Context, user *authenticationv1.UserInfo, verb string, object api.Ref) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: r.attributes(verb, object)}
	if !r.anyUser {
		if user == nil || user.Username == "" && len(user.Groups) == 0 {
			return false, nil // the API server rejects a review without a user
		}
		setUser(&spec, user)
	}
	allowed, err := r.cache.get(ctx, spec)
	if err != nil {
		return false, fmt.Errorf("check whether %s is allowed to %s %s: %w", describeUser(user, r.anyUser), verb, object, err)
	}
	return allowed, nil
}

// setUser sets the user of a review. The groups are sorted, so that equal reviews
// have the same cache key.
func setUser(spec *authorizationv1.SubjectAccessReviewSpec, user *authenticationv1.UserInfo) {
	spec.User, spec.UID = user.Username, user.UID
	spec.Groups = slices.Compact(slices.Sorted(slices.Values(user.Groups)))
	if len(user.Extra) > 0 {
		spec.Extra = make(map[string]authorizationv1.ExtraValue, len(user.Extra))
		for key, values := range user.Extra {
			spec.Extra[key] = authorizationv1.ExtraValue(values)
		}
	}
}

// attributes returns the attributes of a review, without a version, like those of
// `kubectl auth can-i`, so that both have the same result.
func (r *Reviewer) attributes(verb string, object api.Ref) *authorizationv1.ResourceAttributes {
	group, plural := r.served(object.PolicyKind())
	return &authorizationv1.ResourceAttributes{
		Verb: verb, Group: group, Resource: plural, Namespace: object.Namespace, Name: object.Name,
	}
}

func (r *Reviewer) served(kind api.PolicyKind) (group, plural string) {
	if r.resource != nil {
		if group, plural = r.resource(kind); plural != "" {
			return group, plural
		}
	}
	guess, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: kind.Group, Kind: kind.Kind})
	return kind.Group, guess.Resource
}

// Check returns the command with which users check whether they are allowed to
// remove or change the overrides of a policy.
func (r *Reviewer) Check(policy api.Ref) string {
	group, plural := r.served(policy.PolicyKind())
	what := schema.GroupResource{Group: group, Resource: plural}.String()
	if policy.Name != "" {
		what += "/" + policy.Name
	}
	where := "-n " + policy.Namespace
	if policy.Namespace == "" {
		where = "-A" // else kubectl uses the namespace of the kubeconfig
	}
	return strings.Join([]string{"kubectl auth can-i", Verb, what, where}, " ")
}

func describeUser(user *authenticationv1.UserInfo, self bool) string {
	if self || user == nil {
		return "the user"
	}
	return "user " + user.Username
}
