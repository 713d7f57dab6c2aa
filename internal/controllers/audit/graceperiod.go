package audit

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// unmetKey is a constraint with a grace period on a path that violates it.
type unmetKey struct {
	constraint api.Ref
	path       string
}

type unmetConstraint struct {
	path []api.PathElement
	// since is when the deletion of a policy was observed that satisfied it, the zero time if
	// there was none.
	since time.Time
}

// UnmetSince is guard.Guard's.
func (a *Auditor) UnmetSince(constraint api.Ref, path []api.PathElement) time.Time {
	return (*a.unmet.Load())[unmetKey{constraint, pathText(path)}].since
}

// withoutAllowed returns the violations that a run found without those in their grace period,
// which begins for those that are new since a policy was deleted. They are audited once more
// when it ends.
func (a *Auditor) withoutAllowed(v *snapshot.View, found []api.Violation, covered func([]api.PathElement) bool, events []snapshot.Event) []api.Violation {
	before := *a.unmet.Load()
	now := maps.Clone(before)
	maps.DeleteFunc(now, func(_ unmetKey, u unmetConstraint) bool { return covered(u.path) })
	out := slices.DeleteFunc(found, func(f api.Violation) bool {
		c, _ := v.Get(ptr.Deref(f.Policy, api.Ref{})).(*constraint.Constraint)
		if c == nil || c.GracePeriod == 0 || c.Enforcement != api.Deny {
			return false
		}
		key := unmetKey{c.Ref(), pathText(f.Path)}
		was, known := before[key]
		if !known && slices.ContainsFunc(events, deletes(c.PolicyKind())) {
			was.since = time.Now()
			f.Until = new(metav1.NewTime(was.since.Add(c.GracePeriod)))
		}
		was.path = f.Path
		now[key] = was
		if f.Until == nil {
			return false
		}
		if ends, known := a.allowed[f.Object]; !known || f.Until.Time.Before(ends) { // the first of several
			a.allowed[f.Object] = f.Until.Time
		}
		return true
	})
	a.unmet.Store(&now)
	return out
}

// deletes returns a function that reports whether an event is the deletion of a policy of a kind.
func deletes(kind api.PolicyKind) func(snapshot.Event) bool {
	return func(e snapshot.Event) bool {
		p, ok := e.Before.(*policykind.Policy)
		return ok && e.After == nil && p.Kind.Ref() == kind
	}
}

// nextAllowedEnds receives when the first violation is not allowed any more.
func (a *Auditor) nextAllowedEnds() <-chan time.Time {
	if len(a.allowed) == 0 {
		return nil
	}
	return time.After(time.Until(slices.MinFunc(slices.Collect(maps.Values(a.allowed)), time.Time.Compare)))
}

// recordEnded has the next run audit the objects of violations that are not allowed any more.
func (a *Auditor) recordEnded() {
	var ended []snapshot.Event
	now := time.Now()
	for ref, until := range a.allowed {
		if until.After(now) {
			continue
		}
		delete(a.allowed, ref)
		if o := a.lastView.Get(ref); o != nil {
			ended = append(ended, snapshot.Event{Before: o, After: o})
		}
	}
	a.changes.Record(ended)
}
