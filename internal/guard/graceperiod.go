package guard

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// grace says whether a violation is in the grace period of its constraint (SEMANTICS section 8).
type grace int

const (
	noGrace   grace = iota // it has none, or nothing that is known began it
	graceRuns              // the violation is allowed
	graceOver              // the object that is written has to comply
)

// graceOn returns the state of the grace period of a constraint on a path that violates it, and
// when it ends. It begins with the newest object of the path, or with the deletion of a policy
// that satisfied the constraint, such as the write if newly is set.
func (ev *requirements) graceOn(c *constraint.Constraint, e *effective.Effective, newly bool) (state grace, ends time.Time) {
	if c.GracePeriod == 0 || c.Enforcement != api.Deny {
		return noGrace, ends
	}
	now := time.Now()
	var began time.Time
	var of api.Ref // what has to comply
	for o := range e.Path.Objects {
		if created := ev.createdAt(o.Ref, now); created.After(began) {
			began, of = created, o.Ref
		}
	}
	deleted := ev.deletedAt(c, e, now, newly)
	if deleted.After(began) {
		began, of = deleted, objectOf(e)
	}
	switch ends = began.Add(c.GracePeriod); {
	case ends.After(now):
		return graceRuns, ends
	case of == ev.writtenRef() && began.Unix() > c.Created:
		return graceOver, ends
	default:
		return noGrace, ends
	}
}

// deletedAt returns when a policy was deleted that satisfied a constraint on a path, the zero
// time for none.
func (ev *requirements) deletedAt(c *constraint.Constraint, e *effective.Effective, now time.Time, newly bool) time.Time {
	p, ok := ev.change.Before.(*policykind.Policy)
	switch {
	case newly && ok && ev.change.Operation == Delete && p.Kind.Ref() == c.PolicyKind():
		return now
	case ev.guard.UnmetSince == nil:
		return time.Time{}
	default:
		return ev.guard.UnmetSince(c.Ref(), e.Path.Elements())
	}
}

// createdAt returns when an object of a path was created: now if the write creates it, the zero
// time if that is not known.
func (ev *write) createdAt(ref api.Ref, now time.Time) time.Time {
	var created int64
	switch o := ev.after.Get(ref).(type) {
	case *gateway.Gateway:
		created = o.Created
	case *gateway.ListenerSet:
		created = o.Created
	case *gateway.Route:
		created = o.Created
	}
	switch {
	case ref == ev.writtenRef() && ev.change.Before == nil:
		return now
	case created == 0 || created == gateway.Newest || created == gateway.Undated:
		return time.Time{}
	default:
		return time.Unix(created, 0)
	}
}

// graceText says for how much longer a violation is allowed.
func (u *unmetRequirement) graceText() string {
	return duration.HumanDuration(time.Until(u.until).Round(time.Second))
}
