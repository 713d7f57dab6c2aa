package cache

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
)

// Status is the state of a PolicyProfile or of a constraint.
type Status struct {
	Ref        api.Ref
	UID        types.UID
	Generation int64
	// Refused is set if the object is not in force. Reason and Message say why, or that it is.
	Refused         bool
	Reason, Message string
	// Conditions are the current conditions of the status. They must not be modified.
	Conditions []metav1.Condition
}

// Reasons of objects that are not refused.
const (
	reasonAccepted     = "Accepted"
	reasonNotInstalled = "KindNotInstalled"
)

// Statuses returns the state of each PolicyProfile and of each constraint, sorted by kind
// and reference. A constraint on targets is left out while these are not all listed.
func (r *registry) Statuses() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.profileStatuses()
	installed := make(map[api.PolicyKind]bool)
	for _, k := range r.watched {
		if k.policy != nil {
			installed[k.policy.Ref()] = true
		}
	}
	v, ready := r.store.View()
	for i := range constraintKinds {
		for o := range v.Objects(constraintKinds[i].kind) {
			c := o.(*constraint.Constraint) //nolint:forcetypeassert // objects of its kind
			if names, _ := c.Named(); len(names) > 0 && !ready {
				continue
			}
			absent, all := v.Absent(c)
			out = append(out, constraintStatus(c, installed[c.PolicyKind()], absent, all))
		}
	}
	slices.SortFunc(out, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Ref.Kind, b.Ref.Kind), api.CompareRefs(a.Ref, b.Ref))
	})
	return out
}

func (r *registry) profileStatuses() []Status {
	var out []Status
	for p := range r.kinds.Profiles() {
		s := Status{
			Ref: p.Ref(), UID: p.UID, Generation: p.Generation, Conditions: p.Status.Conditions,
			Reason: reasonAccepted, Message: "this profile is used for the kind",
		}
		if refusal := r.kinds.Refusal(p); refusal != nil {
			s.Refused, s.Reason, s.Message = true, string(refusal.Reason), refusal.Message
		}
		out = append(out, s)
	}
	return out
}

// constraintStatus returns the state of a constraint. absent are the targets that it names
// and that do not exist: all of them, or some.
func constraintStatus(c *constraint.Constraint, installed bool, absent []constraint.Named, all bool) Status {
	s := Status{
		Ref: c.Ref(), UID: c.UID, Generation: c.Generation, Conditions: c.Conditions,
		Reason: reasonAccepted, Message: "the constraint is enforced",
	}
	switch {
	case c.Invalid != nil:
		s.Refused, s.Reason, s.Message = true, string(api.Invalid), c.Invalid.Error()
	case !installed:
		s.Reason = reasonNotInstalled
		s.Message = fmt.Sprintf("policy kind %s is not installed: the constraint is enforced once it is", c.PolicyKind())
	case all:
		s.Refused, s.Reason = true, string(api.TargetNotFound)
		s.Message = fmt.Sprintf("not found: %s; the constraint is not enforced until a target exists", joinNames(absent))
	case len(absent) > 0:
		s.Message += fmt.Sprintf(" on the targets that exist; not found: %s", joinNames(absent))
	}
	return s
}

func joinNames(names []constraint.Named) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = n.String()
	}
	return strings.Join(texts, ", ")
}
