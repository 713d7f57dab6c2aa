package rights

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

type (
	spec   = authorizationv1.SubjectAccessReviewSpec
	status = authorizationv1.SubjectAccessReviewStatus
)

// server responds with reply, and counts the reviews.
type server struct {
	reviews atomic.Int32
	reply   func(context.Context, spec) (status, error)
}

func (s *server) reviewer() *Reviewer {
	return &Reviewer{cache: newReviewCache(func(ctx context.Context, q spec) (status, error) {
		s.reviews.Add(1)
		return s.reply(ctx, q)
	})}
}

// newServer returns a server with a fixed response.
func newServer(answer status, err error) *server {
	return &server{reply: func(context.Context, spec) (status, error) { return answer, err }}
}

var (
	policy = api.Ref{Group: "example.com", Kind: "Paint", Namespace: "infra", Name: "red"}
	alice  = &authenticationv1.UserInfo{
		Username: "alice", UID: "u1", Groups: []string{"devs", "admins"},
		Extra: map[string]authenticationv1.ExtraValue{"scope": {"a", "b"}, "team": {"x"}},
	}
)

// like returns a modified copy of alice.
func like(change func(*authenticationv1.UserInfo)) *authenticationv1.UserInfo {
	u := alice.DeepCopy()
	change(u)
	return u
}

func TestResultsAreCached(t *testing.T) {
	for name, answer := range map[string]bool{"a yes": true, "a no": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(status{Allowed: answer}, nil)
				r := s.reviewer()
				get := func() {
					t.Helper()
					allowed, err := r.MayOverride(t.Context(), alice, policy)
					require.NoError(t, err)
					assert.Equal(t, answer, allowed)
				}
				get()
				get()
				time.Sleep(10 * time.Second)
				get()
				assert.EqualValues(t, 1, s.reviews.Load(), "it is still cached")
				time.Sleep(time.Millisecond)
				get()
				assert.EqualValues(t, 2, s.reviews.Load(), "it has expired")
			})
		})
	}
}

func TestEqualReviewsShareAResult(t *testing.T) {
	tests := map[string]struct {
		user   *authenticationv1.UserInfo
		policy api.Ref
		want   int32
	}{
		"the same review": {alice, policy, 1},
		"with the groups in another order, and one of them twice": {
			like(func(u *authenticationv1.UserInfo) { u.Groups = []string{"admins", "devs", "admins"} }), policy, 1,
		},
		"but not of another user":  {like(func(u *authenticationv1.UserInfo) { u.Username = "bob" }), policy, 2},
		"but not of another uid":   {like(func(u *authenticationv1.UserInfo) { u.UID = "u2" }), policy, 2},
		"but not of another group": {like(func(u *authenticationv1.UserInfo) { u.Groups = []string{"devs"} }), policy, 2},
		"but not of a group whose name is those of two": {
			like(func(u *authenticationv1.UserInfo) { u.Groups = []string{`admins","devs`} }), policy, 2,
		},
		"but not of another extra": {
			like(func(u *authenticationv1.UserInfo) { u.Extra["scope"] = authenticationv1.ExtraValue{"a"} }), policy, 2,
		},
		"but not of no extra": {like(func(u *authenticationv1.UserInfo) { u.Extra = nil }), policy, 2},
		"but not of a policy of another name": {
			alice, api.Ref{Group: "example.com", Kind: "Paint", Namespace: "infra", Name: "blue"}, 2,
		},
		"but not of a policy of another namespace": {
			alice, api.Ref{Group: "example.com", Kind: "Paint", Namespace: "app", Name: "red"}, 2,
		},
		"but not of a policy of another kind": {
			alice, api.Ref{Group: "example.com", Kind: "Varnish", Namespace: "infra", Name: "red"}, 2,
		},
		"but not of a policy of another group": {
			alice, api.Ref{Group: "example.org", Kind: "Paint", Namespace: "infra", Name: "red"}, 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(status{Allowed: true}, nil)
			r := s.reviewer()
			_, err := r.MayOverride(t.Context(), alice, policy)
			require.NoError(t, err)
			_, err = r.MayOverride(t.Context(), test.user, test.policy)
			require.NoError(t, err)
			assert.Equal(t, test.want, s.reviews.Load())
		})
	}
}

func TestCacheIsBounded(t *testing.T) {
	s := newServer(status{Allowed: true}, nil)
	r := s.reviewer()
	for i := range maxAnswers + 10 {
		_, err := r.MayOverride(t.Context(), alice, api.Ref{Kind: "Paint", Name: strconv.Itoa(i)})
		require.NoError(t, err)
	}
	assert.Len(t, r.cache.cache.Keys(), maxAnswers)
}

func TestErrorsAreNotCached(t *testing.T) {
	broken := errors.New("connection refused")
	tests := map[string]struct {
		answer status
		err    error
		want   error
		text   string
	}{
		"an error of the call": {
			err: broken, want: broken,
			text: "check whether user alice is allowed to override Paint infra/red: connection refused",
		},
		"a review that could not be evaluated": {
			answer: status{EvaluationError: "authorizer is down"}, want: errNotEvaluated,
			text: "check whether user alice is allowed to override Paint infra/red: the API server could not evaluate the review: authorizer is down",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(test.answer, test.err)
			r := s.reviewer()
			for range 2 {
				allowed, err := r.MayOverride(t.Context(), alice, policy)
				require.ErrorIs(t, err, test.want)
				assert.EqualError(t, err, test.text)
				assert.False(t, allowed)
			}
			assert.EqualValues(t, 2, s.reviews.Load(), "errors are not cached")
			s.reply = func(context.Context, spec) (status, error) { return status{Allowed: true}, nil }
			allowed, err := r.MayOverride(t.Context(), alice, policy)
			require.NoError(t, err)
			assert.True(t, allowed)
		})
	}
}

func TestResultWithEvaluationError(t *testing.T) {
	tests := map[string]struct {
		answer status
		want   bool
	}{
		"a yes is one":              {status{Allowed: true, EvaluationError: "a role is missing"}, true},
		"an explicit denial is one": {status{Denied: true, EvaluationError: "a role is missing"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			allowed, err := newServer(test.answer, nil).reviewer().MayOverride(t.Context(), alice, policy)
			require.NoError(t, err)
			assert.Equal(t, test.want, allowed)
		})
	}
}

func TestConcurrentEqualReviewsAreSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{reply: func(context.Context, spec) (status, error) {
			time.Sleep(time.Second)
			return status{Allowed: true}, nil
		}}
		r := s.reviewer()
		for range 10 {
			go func() {
				allowed, err := r.MayOverride(t.Context(), alice, policy)
				assert.NoError(t, err)
				assert.True(t, allowed)
			}()
		}
		synctest.Wait()
		time.Sleep(2 * time.Second)
		assert.EqualValues(t, 1, s.reviews.Load())
	})
}

// TestCancelledCallerDoesNotCancelTheReview: the first caller has the shortest timeout.
func TestCancelledCallerDoesNotCancelTheReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{reply: func(ctx context.Context, _ spec) (status, error) {
			select {
			case <-ctx.Done():
				return status{}, ctx.Err()
			case <-time.After(5 * time.Second):
				return status{Allowed: true}, nil
			}
		}}
		r := s.reviewer()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := r.MayOverride(ctx, alice, policy)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, time.Second, time.Since(start), "it leaves in time")
		}()
		synctest.Wait()
		allowed, err := r.MayOverride(t.Context(), alice, policy)
		require.NoError(t, err)
		assert.True(t, allowed)
		assert.EqualValues(t, 1, s.reviews.Load())
	})
}

func TestReviewTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{reply: func(ctx context.Context, _ spec) (status, error) {
			<-ctx.Done()
			return status{}, ctx.Err()
		}}
		start := time.Now()
		_, err := s.reviewer().MayOverride(t.Context(), alice, policy)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, reviewTimeout, time.Since(start))
	})
}
