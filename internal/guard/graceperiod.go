package guard

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// grace says whether a violation is in the grace period of its constraint (SEMANTICS section 8).
type grace int

const (
	noGrace   grace = iota // it has none, or nothing that is known began it
	graceRuns              // the violation is allowed
	graceOver              // the object that is written has to comply
)

// graceOn returns the state of the grace period of a constraint on a path that violates it, and
// when it ends: it begins with the newest object of the path, or the last policy that was
// deleted there.
func (ev *requirements) graceOn(c *constraint.Constraint, e *effective.Effective) (state grace, ends time.Time) {
	if c.GracePeriod == 0 || c.Enforcement != api.Deny {
		return noGrace, ends
	}
	now := time.Now()
	var newest, deleted time.Time
	var of api.Ref
	for o := range e.Path.Objects {
		if created := ev.createdAt(o.Ref, now); created.After(newest) {
			newest, of = created, o.Ref
		}
		if at := ev.deletedPolicyAt(c.PolicyKind(), o.Ref); at.After(deleted) {
			deleted = at
		}
	}
	for _, began := range []time.Time{newest, deleted} {
		if end := began.Add(c.GracePeriod); end.After(now) && end.After(ends) {
			state, ends = graceRuns, end
		}
	}
	if state == noGrace && of == ev.writtenRef() && newest.Unix() > c.Created {
		state = graceOver
	}
	return state, ends
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

// deletedPolicyAt returns when the last policy of a kind on an object was deleted, the zero time
// if none is known.
func (ev *requirements) deletedPolicyAt(kind api.PolicyKind, on api.Ref) time.Time {
	if ev.deletedAt == nil {
		ev.deletedAt = make(map[kindOn]time.Time)
		for _, d := range ev.after.DeletedPolicies() {
			for _, t := range ev.after.Targets(d.Policy) {
				ev.deletedAt[kindOn{d.Kind.Ref(), t.Ref}] = d.At
			}
		}
	}
	return ev.deletedAt[kindOn{kind, on}]
}

// kindOn are the policies of a kind on an object.
type kindOn struct {
	kind api.PolicyKind
	on   api.Ref
}

// graceText says for how much longer a violation is allowed.
func (u *unmetRequirement) graceText() string {
	return duration.HumanDuration(time.Until(u.until).Round(time.Second))
}
