package audit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// A grace period begins with the deletion of a policy that satisfied the constraint. What is
// allowed is not reported, and when that ends, its object is audited once more.
func TestGracePeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAuditFixture(t, Options{}, edge, routeR, routeS, onRoute("p", "r", "a: 1"), onRoute("q", "s", "a: 1"), onRoute("other", "r", "b: 1"))
		s.opts.Violations = (&guard.Guard{Engine: s.engine, UnmetSince: s.UnmetSince}).Violations
		longer := constraint.FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{ObjectMeta: metav1.ObjectMeta{Name: "longer"}, Spec: api.ConstraintSpec{
			PolicyKind:  api.ConstrainedKind{Group: worlds.Group, Kind: "Paint"},
			Targets:     []api.ConstraintTarget{{Kind: "HTTPRoute", Name: "r"}},
			GracePeriod: &metav1.Duration{Duration: time.Hour},
			Rules:       []api.ConstraintRule{{Path: "a", Required: true}},
		}})
		require.NoError(t, longer.Invalid)
		s.opts.Store.Apply(snapshot.Put(longer))
		c := constraint.FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: api.ConstraintSpec{
			PolicyKind:  api.ConstrainedKind{Group: worlds.Group, Kind: "Paint"},
			GracePeriod: &metav1.Duration{Duration: 5 * time.Minute},
			Rules:       []api.ConstraintRule{{Path: "a", Required: true}},
		}})
		require.NoError(t, c.Invalid)
		s.opts.Store.Apply(snapshot.Put(c))
		go func() { assert.NoError(t, s.Start(t.Context())) }()
		after := func(d time.Duration) []string {
			time.Sleep(d)
			synctest.Wait()
			return s.paths()
		}
		path := func(route string) []api.PathElement {
			v, _ := s.opts.Store.View()
			all, err := (&guard.Guard{Engine: s.engine}).Violations(t.Context(), v, scopeOf(s, route))
			require.NoError(t, err)
			require.NotEmpty(t, all)
			return all[0].Path
		}
		require.Empty(t, after(time.Minute))

		s.remove(onRoute("p", "r", ""))
		assert.Empty(t, after(4*time.Minute), "what is allowed is not reported")
		since := s.UnmetSince(c.Ref(), path("r"))
		assert.InDelta(t, 4*time.Minute, time.Since(since), float64(2*DefaultDelay))

		s.remove(onRoute("other", "r", ""))
		assert.Equal(t, []string{pathR}, after(2*time.Minute))
		assert.Equal(t, since, s.UnmetSince(c.Ref(), path("r")), "the deletion of a policy that did not satisfy it begins nothing")

		s.put(onRoute("q", "s", "b: 1"))
		assert.Equal(t, []string{pathR, pathS}, after(time.Minute), "an edit has no grace period")
		s.remove(onRoute("q", "s", ""))
		assert.Equal(t, []string{pathR, pathS}, after(time.Minute))
		assert.Zero(t, s.UnmetSince(c.Ref(), path("s")))

		at := path("r")
		s.put(onRoute("p", "r", "a: 1"))
		assert.Equal(t, []string{pathS}, after(time.Minute))
		assert.Zero(t, s.UnmetSince(c.Ref(), at), "it complies")
	})
}

func scopeOf(s *auditFixture, route string) effective.Scope {
	v, _ := s.opts.Store.View()
	return effective.ScopeOf(v.Get(api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: route}))
}
