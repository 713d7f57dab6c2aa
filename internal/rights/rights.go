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

// Verb is what a role has to allow on policies for their overrides to be
// removed or changed.
const Verb = "override"

// Resource returns the group and the plural name under which a policy kind is
// served; the plural is empty where nobody defines the kind.
type Resource func(api.PolicyKind) (group, plural string)

// Reviewer tells who may remove or change overrides. It is safe for concurrent
// use.
type Reviewer struct {
	resource Resource
	// anyone tells that the answer is the same for each user.
	anyUser bool
	cache   *reviewCache
}

// New returns a Reviewer that asks a SubjectAccessReview for the user that it
// is asked about. The client should have a connection limit of its own, or
// none: what it asks is on the way to a verdict. A nil resource means that the
// plural names are guessed.
func New(client authorizationv1client.SubjectAccessReviewsGetter, resource Resource) *Reviewer {
	ask := func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		answer, err := client.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		return answer.Status, nil
	}
	return &Reviewer{resource: resource, cache: newReviewCache(ask)}
}

// Self returns a Reviewer that asks a SelfSubjectAccessReview: its answers are
// about the user of the client, whoever it is asked about.
func Self(client authorizationv1client.SelfSubjectAccessReviewsGetter, resource Resource) *Reviewer {
	ask := func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: spec.ResourceAttributes},
		}
		answer, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		return answer.Status, nil
	}
	return &Reviewer{resource: resource, anyUser: true, cache: newReviewCache(ask)}
}

// Fixed returns a Reviewer that says the same of everyone and asks nobody.
func Fixed(may bool, resource Resource) *Reviewer {
	ask := func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: may}, nil
	}
	return &Reviewer{resource: resource, anyUser: true, cache: newReviewCache(ask)}
}

// MayOverride reports whether a user may remove or change the overrides of a
// policy. Where nobody is known, nobody may. An error tells that it could not
// be found out now, which is neither a yes nor a no.
func (r *Reviewer) MayOverride(ctx context.Context, user *authenticationv1.UserInfo, policy api.Ref) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: r.attributes(policy)}
	if !r.anyUser {
		if user == nil || user.Username == "" && len(user.Groups) == 0 {
			return false, nil // the API server refuses to be asked about nobody
		}
		setUser(&spec, user)
	}
	may, err := r.cache.get(ctx, spec)
	if err != nil {
		return false, fmt.Errorf("ask whether %s may override %s: %w", describeUser(user, r.anyUser), policy, err)
	}
	return may, nil
}

// identify says who the question is about. The groups are sorted, so that equal
// questions are equal.
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

// attributes has no version, as `kubectl auth can-i` sends none: both then get
// the same answer.
func (r *Reviewer) attributes(policy api.Ref) *authorizationv1.ResourceAttributes {
	group, plural := r.served(policy.PolicyKind())
	return &authorizationv1.ResourceAttributes{
		Verb: Verb, Group: group, Resource: plural, Namespace: policy.Namespace, Name: policy.Name,
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

// Check returns the command with which users see whether they may remove or
// change the overrides of a policy.
func (r *Reviewer) Check(policy api.Ref) string {
	group, plural := r.served(policy.PolicyKind())
	what := schema.GroupResource{Group: group, Resource: plural}.String()
	if policy.Name != "" {
		what += "/" + policy.Name
	}
	where := "-n " + policy.Namespace
	if policy.Namespace == "" {
		where = "-A" // else kubectl asks about the namespace of the kubeconfig
	}
	return strings.Join([]string{"kubectl auth can-i", Verb, what, where}, " ")
}

func describeUser(user *authenticationv1.UserInfo, self bool) string {
	if self || user == nil {
		return "the user"
	}
	return "user " + user.Username
}
