package rights_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/rights"
	"overrule.dev/overrule/test/tables"
)

// sentReview is a review that the API server received.
type sentReview struct {
	path string
	spec authorizationv1.SubjectAccessReviewSpec
}

// listen allows every review, and records them.
func listen(t *testing.T) (*authorizationv1client.AuthorizationV1Client, *[]sentReview) {
	t.Helper()
	var requests []sentReview
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if assert.NoError(t, json.NewDecoder(r.Body).Decode(&review)) {
			requests = append(requests, sentReview{r.URL.Path, review.Spec})
		}
		review.Status.Allowed = true
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(review))
	}))
	t.Cleanup(server.Close)
	client, err := authorizationv1client.NewForConfig(&rest.Config{
		Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	require.NoError(t, err)
	return client, &requests
}

// sheep is a kind whose plural cannot be guessed.
func sheep(kind api.PolicyKind) (group, plural string) {
	if kind.Kind == "Sheep" {
		return kind.Group, "flock"
	}
	return "", ""
}

var user = &authenticationv1.UserInfo{
	Username: "alice", UID: "u1", Groups: []string{"devs", "admins"},
	Extra: map[string]authenticationv1.ExtraValue{"example.com/scope": {"b", "a"}},
}

func TestReviewHasAllUserAttributes(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Policy api.Ref
		Want   authorizationv1.ResourceAttributes
	}](t, "testdata/tables/review-has-all-user-attributes.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client, requests := listen(t)
			allowed, err := rights.New(client, sheep).MayOverride(t.Context(), user, test.Policy)
			require.NoError(t, err)
			assert.True(t, allowed)
			assert.Equal(t, []sentReview{{"/apis/authorization.k8s.io/v1/subjectaccessreviews", authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &test.Want, User: "alice", UID: "u1", Groups: []string{"admins", "devs"},
				Extra: map[string]authorizationv1.ExtraValue{"example.com/scope": {"b", "a"}},
			}}}, *requests)
			assert.Equal(t, []string{"devs", "admins"}, user.Groups, "the caller keeps its order")
		})
	}
}

func TestWithoutUserTheResultIsFalse(t *testing.T) {
	for name, user := range map[string]*authenticationv1.UserInfo{
		"no user": nil, "a user without name and groups": {UID: "u1"},
	} {
		t.Run(name, func(t *testing.T) {
			client, requests := listen(t)
			allowed, err := rights.New(client, nil).MayOverride(t.Context(), user, api.Ref{Kind: "Paint", Name: "red"})
			require.NoError(t, err)
			assert.False(t, allowed)
			assert.Empty(t, *requests)
		})
	}
}

func TestSelfReviewsTheUserOfTheClient(t *testing.T) {
	for name, given := range map[string]*authenticationv1.UserInfo{"without a user": nil, "with a user": user} {
		t.Run(name, func(t *testing.T) {
			client, requests := listen(t)
			allowed, err := rights.Self(client, sheep).MayOverride(t.Context(), given,
				api.Ref{Group: "example.com", Kind: "Sheep", Namespace: "infra", Name: "dolly"})
			require.NoError(t, err)
			assert.True(t, allowed)
			assert.Equal(t, []sentReview{{"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "override", Group: "example.com", Resource: "flock", Namespace: "infra", Name: "dolly",
				},
			}}}, *requests)
		})
	}
}

func TestFixed(t *testing.T) {
	for name, allowed := range map[string]bool{"allowed": true, "denied": false} {
		t.Run(name, func(t *testing.T) {
			for _, who := range []*authenticationv1.UserInfo{nil, user} {
				got, err := rights.Fixed(allowed, nil).MayOverride(t.Context(), who, api.Ref{Kind: "Paint", Name: "red"})
				require.NoError(t, err)
				assert.Equal(t, allowed, got)
			}
		})
	}
}

// TestErrorsNameUserAndPolicy rejects the reviews, as for a client that is not allowed
// to create them.
func TestErrorsNameUserAndPolicy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		assert.NoError(t, json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "not allowed to review",
		}))
	}))
	t.Cleanup(server.Close)
	client, err := authorizationv1client.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	paint := api.Ref{Group: "example.com", Kind: "Paint", Namespace: "infra", Name: "red"}

	allowed, err := rights.New(client, nil).MayOverride(t.Context(), user, paint)
	require.EqualError(t, err, "check whether user alice is allowed to override Paint infra/red: not allowed to review")
	assert.False(t, allowed)
	allowed, err = rights.Self(client, nil).MayOverride(t.Context(), user, paint)
	require.EqualError(t, err, "check whether the user is allowed to override Paint infra/red: not allowed to review")
	assert.False(t, allowed)
}

func TestCheckReturnsACommand(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Policy api.Ref
		Want   string
	}](t, "testdata/tables/check-returns-a-command.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.Want, rights.Fixed(false, sheep).Check(test.Policy))
		})
	}
}
