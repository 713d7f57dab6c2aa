package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// constraintOn decodes a ClusterPolicyConstraint, or with a namespace a
// PolicyConstraint.
func constraintOn(t *testing.T, kind, namespace, name, expression string) snapshot.Object {
	t.Helper()
	ref := constraint.ClusterKind
	if namespace != "" {
		ref = constraint.Kind
	}
	o, err := snapshot.Decode(ref, nil, fmt.Appendf(nil,
		`{"metadata":{"namespace":%q,"name":%q},"spec":{"policyKind":{"group":"example.com","kind":%q},"validations":[{"expression":%q}]}}`,
		namespace, name, kind, expression), 0)
	require.NoError(t, err)
	return o
}

func named(all []*constraint.Constraint) []string {
	var out []string
	for _, c := range all {
		out = append(out, c.Ref().String())
	}
	return out
}

func TestConstraintsByKind(t *testing.T) {
	paint, label := api.PolicyKind{Group: "example.com", Kind: "Paint"}, api.PolicyKind{Group: "example.com", Kind: "Label"}
	empty := &snapshot.View{}
	assert.Empty(t, empty.Constraints(paint))
	assert.Empty(t, empty.Constrained())

	v := empty.With(
		snapshot.Put(constraintOn(t, "Paint", "b", "z", "true")), snapshot.Put(constraintOn(t, "Paint", "", "z", "true")),
		snapshot.Put(constraintOn(t, "Label", "", "y", "true")), snapshot.Put(constraintOn(t, "Paint", "", "a", "true")),
		snapshot.Put(constraintOn(t, "Paint", "a", "z", "true")), snapshot.Put(constraintOn(t, "Paint", "", "wrong", "1")),
	)
	assert.Equal(t, []string{"ClusterPolicyConstraint a", "ClusterPolicyConstraint z", "PolicyConstraint a/z", "PolicyConstraint b/z"},
		named(v.Constraints(paint)), "sorted, and without what is not valid")
	assert.Equal(t, []api.PolicyKind{label, paint}, v.Constrained())
	assert.Equal(t, 4, v.Count(constraint.ClusterKind), "what is not valid is kept")

	moved := v.With(snapshot.Put(constraintOn(t, "Label", "", "a", "true")))
	assert.Equal(t, []string{"ClusterPolicyConstraint z", "PolicyConstraint a/z", "PolicyConstraint b/z"}, named(moved.Constraints(paint)))
	assert.Equal(t, []string{"ClusterPolicyConstraint a", "ClusterPolicyConstraint y"}, named(moved.Constraints(label)))

	broken := v.With(snapshot.Put(constraintOn(t, "Label", "", "y", "1")))
	assert.Empty(t, broken.Constraints(label), "an edit may make it invalid")
	assert.Equal(t, []api.PolicyKind{paint}, broken.Constrained())
	fixed := broken.With(snapshot.Put(constraintOn(t, "Label", "", "y", "true")))
	assert.Equal(t, []string{"ClusterPolicyConstraint y"}, named(fixed.Constraints(label)))

	deleted := v.With(snapshot.Delete(v.Constraints(label)[0].Ref()))
	assert.Equal(t, []api.PolicyKind{paint}, deleted.Constrained())
	assert.Len(t, v.Constraints(label), 1, "the view before stays as it is")
	assert.Len(t, v.Constraints(paint), 4, "the view before stays as it is")
}

// Two views that derive from one do not modify what they share.
func TestViewsHaveTheirOwnConstraints(t *testing.T) {
	paint := api.PolicyKind{Group: "example.com", Kind: "Paint"}
	v := &snapshot.View{}
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		v = v.With(snapshot.Put(constraintOn(t, "Paint", "", name, "true")))
		one := v.With(snapshot.Put(constraintOn(t, "Paint", "", "a1", "true")), snapshot.Put(constraintOn(t, "Paint", "", "z1", "true")))
		two := v.With(snapshot.Put(constraintOn(t, "Paint", "", "a2", "true")), snapshot.Put(constraintOn(t, "Paint", "", "z2", "true")))
		less := one.With(snapshot.Delete(one.Constraints(paint)[0].Ref()))
		all := named(one.Constraints(paint))
		assert.Equal(t, []string{"ClusterPolicyConstraint a1", "ClusterPolicyConstraint z1"}, []string{all[0], all[len(all)-1]})
		all = named(two.Constraints(paint))
		assert.Equal(t, []string{"ClusterPolicyConstraint a2", "ClusterPolicyConstraint z2"}, []string{all[0], all[len(all)-1]})
		assert.Len(t, less.Constraints(paint), len(all)-1)
		assert.Len(t, v.Constraints(paint), len(all)-2)
	}
}

func TestInvalidConstraintsAreNotInForce(t *testing.T) {
	for _, ref := range []api.PolicyKind{constraint.Kind, constraint.ClusterKind} {
		_, err := snapshot.Decode(ref, nil, []byte(`{"spec":5}`), 0)
		assert.ErrorContains(t, err, "decode "+ref.String()+": ")
	}
}

func TestViewLookup(t *testing.T) {
	class := &gateway.Class{Name: "istio", Labels: labels.Set{"tier": "edge"}}
	service := &gateway.Service{Namespace: "app", Name: "cart", Ports: []gateway.Port{{Name: "http", Number: 80}}}
	v := (&snapshot.View{}).With(snapshot.Put(class), snapshot.Put(service))
	assert.Equal(t, labels.Set{"tier": "edge"}, v.LabelsOf(class.Ref()))
	assert.Empty(t, v.LabelsOf((&gateway.Class{Name: "nginx"}).Ref()))
	assert.Equal(t, int32(80), v.PortOf(service.Ref(), "http"))
	assert.Equal(t, int32(0), v.PortOf(service.Ref(), "admin"))
	assert.Equal(t, int32(0), v.PortOf((&gateway.Service{Name: "x"}).Ref(), "http"))
}
