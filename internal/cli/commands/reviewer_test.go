package commands

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// reviewer is a fake API server that answers access reviews and self subject reviews
// for one user.
type reviewer struct {
	url     string
	allowed bool
	// broken fails every review.
	broken bool

	mu       sync.Mutex
	requests []authorizationv1.ResourceAttributes
}

// accessReviews returns the attributes of the access reviews received.
func (s *reviewer) accessReviews() []authorizationv1.ResourceAttributes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// startReviewer starts a reviewer for a test. allowed is its answer to access reviews.
func startReviewer(t *testing.T, may bool) *reviewer {
	t.Helper()
	s := &reviewer{allowed: may}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; {
		case s.broken:
			http.Error(w, "out of order", http.StatusInternalServerError)
		case kind == "selfsubjectaccessreviews":
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			var review authorizationv1.SelfSubjectAccessReview
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &review) // JSON or protobuf
			assert.NoError(t, err)
			s.mu.Lock()
			s.requests = append(s.requests, *review.Spec.ResourceAttributes)
			s.mu.Unlock()
			review.Kind, review.APIVersion = "SelfSubjectAccessReview", "authorization.k8s.io/v1"
			review.Status.Allowed = s.allowed
			assert.NoError(t, json.NewEncoder(w).Encode(review))
		case kind == "selfsubjectreviews":
			answer := authenticationv1.SelfSubjectReview{}
			answer.Kind, answer.APIVersion = "SelfSubjectReview", "authentication.k8s.io/v1"
			answer.Status.UserInfo = authenticationv1.UserInfo{Username: "alice", Groups: []string{"devs"}}
			assert.NoError(t, json.NewEncoder(w).Encode(answer))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// kubeconfig writes a kubeconfig file for the server and returns its path.
func (s *reviewer) kubeconfig(t *testing.T) string {
	t.Helper()
	text := strings.Replace(kubeconfig, "https://127.0.0.1:1", s.url, 1)
	return write(t, "config", strings.Replace(text, "user: {token: t}", "user: {}", 1))
}
