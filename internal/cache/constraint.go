package cache

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// constraintKinds are the kinds of constraints.
var constraintKinds = []builtin{
	constraints(constraint.ClusterKind, func(m metav1.ObjectMeta, spec api.ConstraintSpec) *constraint.Constraint {
		return constraint.FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{ObjectMeta: m, Spec: spec})
	}),
	constraints(constraint.Kind, func(m metav1.ObjectMeta, spec api.ConstraintSpec) *constraint.Constraint {
		return constraint.FromPolicyConstraint(&api.PolicyConstraint{ObjectMeta: m, Spec: spec})
	}),
}

// constraints returns a kind of constraints. One with unknown or invalid fields is Invalid:
// without them, it may require something else.
func constraints(kind api.PolicyKind, read func(metav1.ObjectMeta, api.ConstraintSpec) *constraint.Constraint) builtin {
	of := snapshot.FixedKind(kind)
	return builtin{resource: of.Resource, kind: kind, versions: of.Versions, decode: decoderOf(func(u *unstructured.Unstructured) (_ snapshot.Object, err error) {
		defer background.RecoverError(&err, "decode it")
		var head struct {
			metav1.ObjectMeta `json:"metadata"`
			Status            api.ConstraintStatus `json:"status"`
		}
		spec, misread, err := decodeSpec[api.ConstraintSpec](kind.Kind, u, &head)
		if err != nil {
			return nil, err
		}
		c := read(head.ObjectMeta, spec)
		c.UID, c.Generation, c.Conditions = head.UID, head.Generation, head.Status.Conditions
		if misread != nil {
			c.Invalid = misread
		}
		return c, nil
	})}
}

// ignoring returns a decoder for which the constraints of a namespace are Invalid: its
// writes are not evaluated.
func ignoring(namespace string, decode decoder) decoder {
	return func(obj runtime.Object) (snapshot.Object, error) {
		o, err := decode(obj)
		if c, ok := o.(*constraint.Constraint); ok && namespace != "" && c.Ref().Namespace == namespace {
			c.Invalid = fmt.Errorf("constraints in Overrule's own namespace %s are ignored; move it to another namespace", namespace)
		}
		return o, err
	}
}

// objectsChanged signals that the status of constraints may have changed: one was written,
// or a target was created or deleted. It is called with the lock of the store held.
func (r *registry) objectsChanged(events []snapshot.Event) {
	for _, e := range events {
		if c, ok := e.After.(*constraint.Constraint); ok && c.Invalid != nil && (e.Before == nil || !snapshot.Same(e.Before, c)) {
			r.log.Info("constraint not used", "constraint", c.Ref().String(), "message", c.Invalid.Error())
		}
	}
	if slices.ContainsFunc(snapshot.Objects(events), func(o snapshot.Object) bool {
		kind := o.Ref().PolicyKind()
		return gateway.Known(kind) || constraint.IsKind(kind)
	}) {
		signal(r.statusChanged)
	}
}
