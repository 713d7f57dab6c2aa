package cache

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// constraintKind is one of the constraint kinds.
type constraintKind struct {
	// resource is the plural name, and the name of the source.
	resource string
	kind     api.PolicyKind
	read     func(metav1.ObjectMeta, api.ConstraintSpec) *constraint.Constraint
}

var constraintKinds = []constraintKind{
	{
		resource: "clusterpolicyconstraints", kind: constraint.ClusterKind,
		read: func(m metav1.ObjectMeta, spec api.ConstraintSpec) *constraint.Constraint {
			return constraint.FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{ObjectMeta: m, Spec: spec})
		},
	},
	{
		resource: "policyconstraints", kind: constraint.Kind,
		read: func(m metav1.ObjectMeta, spec api.ConstraintSpec) *constraint.Constraint {
			return constraint.FromPolicyConstraint(&api.PolicyConstraint{ObjectMeta: m, Spec: spec})
		},
	},
}

// constraintKindOf returns the constraint kind of a definition, or nil.
func constraintKindOf(d *snapshot.Definition) *constraintKind {
	i := slices.IndexFunc(constraintKinds, func(k constraintKind) bool { return d.Fixed && k.kind == d.Kind })
	if i < 0 {
		return nil
	}
	return &constraintKinds[i]
}

// constraintRecord is a constraint of the cluster with the metadata that its status
// needs.
type constraintRecord struct {
	*constraint.Constraint
	uid        types.UID
	generation int64
	conditions []metav1.Condition
}

// decode converts a constraint. One with unknown or invalid fields is Invalid: without
// them, it may require something else.
func (k *constraintKind) decode(obj runtime.Object) (out *constraintRecord, err error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("got %T, want %T", obj, u)
	}
	defer background.RecoverError(&err, "decode it")
	var head struct {
		metav1.ObjectMeta `json:"metadata"`
		Status            api.ConstraintStatus `json:"status"`
	}
	convert := runtime.DefaultUnstructuredConverter
	rest := maps.Clone(u.Object)
	delete(rest, "spec")
	if err := convert.FromUnstructured(rest, &head); err != nil {
		return nil, fmt.Errorf("read the %s: %w", k.kind.Kind, err)
	}
	var body struct {
		Spec api.ConstraintSpec `json:"spec"`
	}
	misread := convert.FromUnstructuredWithValidation(map[string]any{"spec": u.Object["spec"]}, &body, true)
	c := k.read(head.ObjectMeta, body.Spec)
	if misread != nil {
		c.Invalid = fmt.Errorf("%w; correct it, or update Overrule if it is older than the CustomResourceDefinition", misread)
	}
	return &constraintRecord{Constraint: c, uid: head.UID, generation: head.Generation, conditions: head.Status.Conditions}, nil
}

// decodeObject is decode for a view.
func (k *constraintKind) decodeObject(obj runtime.Object) (snapshot.Object, error) {
	d, err := k.decode(obj)
	if err != nil {
		return nil, err
	}
	return d.Constraint, nil
}

// constraintTarget is the target of the reflector of a constraint kind.
type constraintTarget struct {
	*registry
	kind *watchedKind
}

func (t constraintTarget) put(d *constraintRecord) {
	t.update(func() { t.putConstraint(d) })
}

func (t constraintTarget) remove(name cache.ObjectName) {
	t.update(func() { t.removeConstraint(refOf(t.kind.Kind, name)) })
}

func (t constraintTarget) replace(all []*constraintRecord) {
	t.update(func() {
		removed := maps.Clone(t.constraints)
		for _, d := range all {
			delete(removed, d.Ref())
			t.putConstraint(d)
		}
		for ref := range removed {
			if ref.PolicyKind() == t.kind.Kind {
				t.removeConstraint(ref)
			}
		}
		t.markListed(t.kind)
		t.store.Listed(t.kind.Resource.Resource)
	})
}

// update runs act unless the reflector was stopped.
func (t constraintTarget) update(act func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[t.kind.Name] != t.kind {
		return
	}
	act()
	signal(t.statusChanged)
}

// putConstraint puts a constraint into force. The previous object stays in the store if
// only its status changed.
func (r *registry) putConstraint(d *constraintRecord) {
	old := r.constraints[d.Ref()]
	r.constraints[d.Ref()] = d
	if old != nil && old.uid == d.uid && old.generation == d.generation {
		d.Constraint = old.Constraint
		return
	}
	if r.isExempt(d) {
		return
	}
	r.store.Apply(snapshot.Put(d.Constraint))
	if d.Invalid != nil {
		r.log.Info("constraint not used", "constraint", d.Ref().String(), "message", d.Invalid.Error())
	}
}

// isExempt reports whether a constraint is in the namespace whose writes are not
// evaluated.
func (r *registry) isExempt(d *constraintRecord) bool {
	return r.exemptNamespace != "" && d.Ref().Namespace == r.exemptNamespace
}

func (r *registry) removeConstraint(ref api.Ref) {
	delete(r.constraints, ref)
	r.store.Apply(snapshot.Delete(ref))
}

// removeConstraints removes all constraints of a kind whose definition was removed.
func (r *registry) removeConstraints(kind api.PolicyKind, resource string) {
	maps.DeleteFunc(r.constraints, func(ref api.Ref, _ *constraintRecord) bool { return ref.PolicyKind() == kind })
	r.store.Replace(kind, nil)
	r.store.Listed(resource) // a kind that is not installed has no objects
	signal(r.statusChanged)
}

// ConstraintStatus is the state of a constraint.
type ConstraintStatus struct {
	Ref        api.Ref
	UID        types.UID
	Generation int64
	// Invalid is why the constraint is not in force. It is nil if the constraint is in
	// force, or will be when its policy kind is Installed.
	Invalid   error
	Kind      api.PolicyKind
	Installed bool
	// Absent are the targets that it names and that do not exist. NoTarget is true if
	// it has no others.
	Absent   []constraint.Named
	NoTarget bool
	// Conditions are the current conditions of the status. They must not be modified.
	Conditions []metav1.Condition
}

// targetsChanged signals that a target of a constraint may have been created or
// deleted. It is called with the lock of the store held.
func (r *registry) targetsChanged(events []snapshot.Event) {
	if slices.ContainsFunc(snapshot.Objects(events), func(o snapshot.Object) bool { return gateway.Known(o.Ref().PolicyKind()) }) {
		signal(r.statusChanged)
	}
}

func (r *registry) constraintStatuses() []ConstraintStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	installed := make(map[api.PolicyKind]bool)
	for _, k := range r.watched {
		if k.policy != nil {
			installed[k.policy.Ref()] = true
		}
	}
	v, ready := r.store.View()
	out := make([]ConstraintStatus, 0, len(r.constraints))
	for ref, d := range r.constraints {
		if names, _ := d.Named(); len(names) > 0 && !ready {
			continue // a target may exist but not be listed yet
		}
		s := ConstraintStatus{
			Ref: ref, UID: d.uid, Generation: d.generation, Invalid: d.Invalid,
			Kind: d.PolicyKind(), Installed: installed[d.PolicyKind()], Conditions: d.conditions,
		}
		s.Absent, s.NoTarget = v.Absent(d.Constraint)
		if r.isExempt(d) {
			s.Invalid = fmt.Errorf("constraints in Overrule's own namespace %s are ignored; move it to another namespace", ref.Namespace)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b ConstraintStatus) int { return api.CompareRefs(a.Ref, b.Ref) })
	return out
}
