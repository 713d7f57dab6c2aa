package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/constraint"
)

// maxMessageLength is the maximum length of the message of a condition.
const maxMessageLength = 32768

// Reasons of a condition with status True.
const (
	reasonAccepted     = "Accepted"
	reasonNotInstalled = "KindNotInstalled"
)

// subject is an object whose condition is maintained.
type subject struct {
	ref        api.Ref
	uid        types.UID
	generation int64
	conditions []metav1.Condition
	// refused is true if the object is not in force.
	refused         bool
	reason, message string
}

func profileSubject(p cache.ProfileStatus) subject {
	s := subject{
		ref: api.Ref{Group: api.Group, Kind: api.KindPolicyProfile, Name: p.Name},
		uid: p.UID, generation: p.Generation, conditions: p.Conditions,
		reason: reasonAccepted, message: "this profile is used for the kind",
	}
	if r := p.Refused; r != nil {
		s.refused, s.reason, s.message = true, string(r.Reason), r.Message
	}
	return s
}

func constraintSubject(c cache.ConstraintStatus) subject {
	s := subject{
		ref: c.Ref, uid: c.UID, generation: c.Generation, conditions: c.Conditions,
		reason: reasonAccepted, message: "the constraint is enforced",
	}
	switch {
	case c.Invalid != nil:
		s.refused, s.reason, s.message = true, string(api.Invalid), c.Invalid.Error()
	case !c.Installed:
		s.reason = reasonNotInstalled
		s.message = fmt.Sprintf("policy kind %s is not installed: the constraint is enforced once it is", c.Kind)
	case c.NoTarget:
		s.refused, s.reason = true, string(api.TargetNotFound)
		s.message = fmt.Sprintf("not found: %s; the constraint is not enforced until a target exists", joinNames(c.Absent))
	case len(c.Absent) > 0:
		s.message += fmt.Sprintf(" on the targets that exist; not found: %s", joinNames(c.Absent))
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

// condition returns the desired condition, and whether it differs from the current one.
// The transition time changes with the status only.
func (s subject) condition(now metav1.Time) (metav1.Condition, bool) {
	want := metav1.Condition{
		Type: api.ConditionAccepted, Status: metav1.ConditionTrue, Reason: s.reason,
		Message: truncate(s.message), ObservedGeneration: s.generation, LastTransitionTime: now,
	}
	if s.refused {
		want.Status = metav1.ConditionFalse
	}
	all := slices.Clone(s.conditions)
	differs := meta.SetStatusCondition(&all, want)
	return *meta.FindStatusCondition(all, api.ConditionAccepted), differs
}

// truncate shortens a message to maxMessageLength without splitting a rune.
func truncate(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessageLength)], "")
}
