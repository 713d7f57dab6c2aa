package cache

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/messages"
)

var (
	constraintCRD        = crd{group: api.Group, kind: "PolicyConstraint", plural: "policyconstraints", versions: []string{"v1alpha1"}}
	clusterConstraintCRD = crd{
		group: api.Group, kind: "ClusterPolicyConstraint", plural: "clusterpolicyconstraints", versions: []string{"v1alpha1"}, clusterScoped: true,
	}
)

// limited is a constraint on ColorPolicies, cluster-wide without a namespace.
func limited(namespace, name string, generation int64, rule map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"policyKind": map[string]any{"group": colorCRD.group, "kind": colorCRD.kind}, "enforcement": "Deny",
		"rules": []any{rule},
	}}}
	u.SetAPIVersion("overrule.dev/v1alpha1")
	u.SetKind("ClusterPolicyConstraint")
	if namespace != "" {
		u.SetKind("PolicyConstraint")
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID("uid-of-" + name))
	u.SetGeneration(generation)
	return u
}

func atMost(limit int64) map[string]any { return map[string]any{"path": "dark", "max": limit} }

// constraintRefs are the names of the constraints in force in the view.
func (r *testRegistry) constraintRefs() []string {
	v, _ := r.store.View()
	var out []string
	for _, c := range v.Constraints(colorRef) {
		out = append(out, c.Ref().Key())
	}
	return out
}

func TestConstraintsReachTheStore(t *testing.T) {
	r := newTestRegistry(t)
	r.exemptNamespace = "own"
	r.replace(r.definitionsOf(constraintCRD, clusterConstraintCRD, colorCRD))
	assert.Contains(t, r.store.Waiting(), "policyconstraints", "not ready before constraints are listed")
	r.list(constraintCRD.obj().Name, limited("app", "a", 1, atMost(1)), limited("own", "left-out", 1, atMost(1)))
	r.list(clusterConstraintCRD.obj().Name, limited("", "c", 1, atMost(1)))
	assert.NotContains(t, r.store.Waiting(), "policyconstraints")
	assert.NotContains(t, r.store.Waiting(), "clusterpolicyconstraints")
	assert.Equal(t, []string{"c", "app/a"}, r.constraintRefs())

	store := r.watched[constraintCRD.obj().Name].store
	require.NoError(t, store.Add(limited("app", "b", 1, atMost(1))))
	require.NoError(t, store.Delete(limited("app", "a", 1, atMost(1))))
	assert.Equal(t, []string{"c", "app/b"}, r.constraintRefs())

	require.NoError(t, store.Replace([]any{limited("app", "d", 1, atMost(1))}, "2"))
	assert.Equal(t, []string{"c", "app/d"}, r.constraintRefs(), "a list removes missing objects of its own kind")

	r.forget(clusterConstraintCRD.obj().Name)
	assert.Equal(t, []string{"app/d"}, r.constraintRefs(), "removing the kind removes all")
	require.NoError(t, store.Add(limited("app", "e", 1, atMost(1))))
	r.forget(constraintCRD.obj().Name)
	assert.Empty(t, r.constraintRefs())
	require.NoError(t, store.Add(limited("app", "late", 1, atMost(1))))
	assert.Empty(t, r.constraintRefs(), "late events add nothing")
	assert.Empty(t, r.Statuses())
}

func TestStatusUpdateIsNoChange(t *testing.T) {
	r := newTestRegistry(t)
	var events []snapshot.Event
	r.store.Subscribe(func(all []snapshot.Event) { events = append(events, all...) })
	r.replace(r.definitionsOf(clusterConstraintCRD))
	r.list(clusterConstraintCRD.obj().Name, limited("", "c", 1, atMost(1)))
	written := limited("", "c", 1, atMost(1))
	require.NoError(t, unstructured.SetNestedSlice(written.Object, []any{map[string]any{"type": "Accepted", "status": "True"}}, "status", "conditions"))
	changed := func(u *unstructured.Unstructured) bool {
		events = nil
		require.NoError(t, r.watched[clusterConstraintCRD.obj().Name].store.Update(u))
		require.Len(t, events, 1)
		return !snapshot.Same(events[0].Before, events[0].After)
	}
	assert.False(t, changed(written))
	assert.Equal(t, "True", string(r.Statuses()[0].Conditions[0].Status))
	assert.True(t, changed(limited("", "c", 2, atMost(2))))
}

func TestConstraintStatuses(t *testing.T) {
	r := newTestRegistry(t)
	r.exemptNamespace = "own"
	r.replace(r.definitionsOf(profileCRD, constraintCRD, colorCRD))
	r.list(profileCRD.obj().Name)
	statusChanged := func() bool {
		select {
		case <-r.statusChanged:
			return true
		default:
			return false
		}
	}
	statusChanged()
	r.list(constraintCRD.obj().Name,
		limited("app", "good", 3, atMost(1)), limited("app", "odd", 1, map[string]any{"path": "dark", "maximum": int64(1)}),
		limited("own", "left-out", 1, atMost(1)))
	assert.True(t, statusChanged())
	states := func() []Status {
		out := r.Statuses()
		for i := range out {
			if out[i].Refused {
				messages.Golden(t, out[i].Message)
			}
			out[i].Message, _, _ = strings.Cut(out[i].Message, "; ") // without what to do
		}
		return out
	}
	status := func(namespace, name string, generation int64, refused bool, reason, message string) Status {
		return Status{
			Ref: api.Ref{Group: api.Group, Kind: api.KindPolicyConstraint, Namespace: namespace, Name: name},
			UID: types.UID("uid-of-" + name), Generation: generation, Refused: refused, Reason: reason, Message: message,
		}
	}
	want := []Status{
		status("app", "good", 3, false, "Accepted", "the constraint is enforced"),
		status("app", "odd", 1, true, "Invalid", `strict decoding error: unknown field "spec.rules[0].maximum"`),
		status("own", "left-out", 1, true, "Invalid", "constraints in Overrule's own namespace own are ignored"),
	}
	assert.Equal(t, want, states())
	assert.Equal(t, []string{"app/good"}, r.constraintRefs())

	r.forget(colorCRD.obj().Name)
	assert.True(t, statusChanged(), "removing a kind changes the status of constraints")
	want[0].Reason, want[0].Message = "KindNotInstalled", "policy kind ColorPolicy.policies.example.com is not installed: the constraint is enforced once it is"
	assert.Equal(t, want, states())
}

func TestConstraintWithInvalidMetadataIsAbsent(t *testing.T) {
	odd := limited("app", "a", 1, atMost(1))
	odd.Object["status"] = "odd"
	kind := fixedKindOf(snapshot.ParseDefinition(constraintCRD.obj()))
	_, err := kind.decode(odd)
	require.ErrorContains(t, err, "read the PolicyConstraint: ")
	_, err = kind.decode(&metav1.Status{})
	require.EqualError(t, err, "got *v1.Status, want *unstructured.Unstructured")
}

func TestForbiddenConstraintsAreAProblem(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(constraintCRD))
	r.watched[constraintCRD.obj().Name].onForbidden(errors.New("no"))
	require.Len(t, r.Problems(), 1)
	assert.ErrorContains(t, r.Problems()[0].Err, "policyconstraints.overrule.dev")
	messages.Golden(t, r.Problems()[0].Err.Error())
	assert.Contains(t, r.store.Waiting(), "policyconstraints", "not ready without constraints")
}

func TestPluralIsFromDefinition(t *testing.T) {
	r := newTestRegistry(t)
	w := &Watcher{registry: r.registry}
	r.replace(r.definitionsOf(colorCRD))
	group, plural := w.Resource(colorRef)
	assert.Equal(t, []string{"policies.example.com", "colorpolicies"}, []string{group, plural})
	group, plural = w.Resource(api.PolicyKind{Group: "example.com", Kind: "Nothing"})
	assert.Equal(t, []string{"example.com", ""}, []string{group, plural})
}

// targeting is a constraint on a gateway.
func targeting(gw string) *unstructured.Unstructured {
	u := limited("app", "a", 1, atMost(1))
	u.Object["spec"].(map[string]any)["targets"] = []any{map[string]any{"kind": "Gateway", "name": gw}}
	return u
}

func TestConstraintStatusFollowsTargets(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(constraintCRD, colorCRD))
	r.list(constraintCRD.obj().Name, targeting("g"))
	assert.Empty(t, r.Statuses(), "no target is absent before all is listed")

	for _, source := range r.store.Waiting() {
		r.store.Listed(source)
	}
	r.store.KindListed(colorRef)
	statusChanged := func() bool {
		select {
		case <-r.statusChanged:
			return true
		default:
			return false
		}
	}
	statusChanged()
	status := func() Status {
		all := r.Statuses()
		require.Len(t, all, 1)
		return all[0]
	}
	const absent = "not found: Gateway app/g; the constraint is not enforced until a target exists"
	assert.Equal(t, absent, status().Message)
	assert.Equal(t, "TargetNotFound", status().Reason)
	gw := &gateway.Gateway{Namespace: "app", Name: "g"}
	r.store.Apply(snapshot.Put(gw))
	assert.True(t, statusChanged(), "a created target changes the status")
	assert.Equal(t, "the constraint is enforced", status().Message)
	r.store.Apply(snapshot.Delete(gw.Ref()))
	assert.True(t, statusChanged(), "a deleted target changes the status")
	assert.Equal(t, absent, status().Message)
}

func TestConstraintStatusNamesMissingTargets(t *testing.T) {
	missing := []constraint.Named{
		{Ref: api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: "public"}},
		{Ref: api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: "edge"}, Section: "http"},
	}
	c := &constraint.Constraint{}
	assert.Equal(t, "not found: Gateway infra/public, section http of Gateway infra/edge; the constraint is not enforced until a target exists", constraintStatus(c, true, missing, true).Message)
	assert.Equal(t, "the constraint is enforced on the targets that exist; not found: Gateway infra/public", constraintStatus(c, true, missing[:1], false).Message)
	assert.Equal(t, "KindNotInstalled", constraintStatus(c, false, missing, true).Reason, "targets are not checked if the kind is not installed")
}
