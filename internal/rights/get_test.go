package rights

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// asking records the scopes that are asked for, and allows one of them.
type asking struct {
	mu      sync.Mutex
	allowed string
	asked   []string
	specs   []spec
}

func (a *asking) reviewer() *Reviewer {
	return (&server{reply: func(_ context.Context, q spec) (status, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		at := q.ResourceAttributes
		scope := at.Verb + " " + at.Group + "/" + at.Resource + " " + at.Namespace + "/" + at.Name
		a.asked, a.specs = append(a.asked, scope), append(a.specs, q)
		return status{Allowed: scope == a.allowed}, nil
	}}).reviewer()
}

func TestRightsToGetAreAskedFromTheWidestToTheNarrowest(t *testing.T) {
	all, inNamespace, one := "get example.com/paints /", "get example.com/paints infra/", "get example.com/paints infra/red"
	for name, test := range map[string]struct {
		allowed string
		want    []string
		may     bool
	}{
		"of the cluster":      {all, []string{all}, true},
		"of the namespace":    {inNamespace, []string{all, inNamespace}, true},
		"of the object alone": {one, []string{all, inNamespace, one}, true},
		"none":                {"", []string{all, inNamespace, one}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asking{allowed: test.allowed}
			r := a.reviewer()
			for range 2 { // the second time from the cache
				may, err := r.MayGet(t.Context(), alice, policy)
				require.NoError(t, err)
				assert.Equal(t, test.may, may)
			}
			assert.Equal(t, test.want, a.asked)
			assert.Equal(t, []string{"admins", "devs"}, a.specs[0].Groups)
			assert.Equal(t, authorizationv1.ExtraValue{"a", "b"}, a.specs[0].Extra["scope"])
			assert.Equal(t, []string{"alice", "u1"}, []string{a.specs[0].User, a.specs[0].UID})
		})
	}
}

func TestWideRightsAreAskedForOnce(t *testing.T) {
	a := &asking{allowed: "get example.com/paints /"}
	r := a.reviewer()
	for _, name := range []string{"red", "blue", "green"} {
		may, err := r.MayGet(t.Context(), alice, api.Ref{Group: "example.com", Kind: "Paint", Namespace: "infra", Name: name})
		require.NoError(t, err)
		assert.True(t, may)
	}
	assert.Len(t, a.asked, 1)
}

func TestRightsToGetAClusterScopedObject(t *testing.T) {
	a := &asking{}
	may, err := a.reviewer().MayGet(t.Context(), alice, api.Ref{Group: "example.com", Kind: "Paint", Name: "red"})
	require.NoError(t, err)
	assert.False(t, may)
	assert.Equal(t, []string{"get example.com/paints /", "get example.com/paints /red"}, a.asked)
}

func TestRightsToGetOfNoOneAndUnknownRights(t *testing.T) {
	s := newServer(status{Allowed: true}, nil)
	may, err := s.reviewer().MayGet(t.Context(), nil, policy)
	require.NoError(t, err)
	assert.False(t, may)
	assert.Zero(t, s.reviews.Load())

	broken := errors.New("connection refused")
	_, err = newServer(status{}, broken).reviewer().MayGet(t.Context(), alice, policy)
	require.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, "check whether user alice is allowed to get Paint")
}
