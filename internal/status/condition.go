package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/watch"
)

// messageLength is the most that a condition's message may have.
const messageLength = 32768

// condition returns what a profile's condition is to be, and whether that
// differs from the one that it has. Its time changes with its status alone.
func condition(p watch.ProfileStatus, now metav1.Time) (metav1.Condition, bool) {
	want := metav1.Condition{
		Type: api.ProfileAccepted, Status: metav1.ConditionTrue, Reason: "Accepted",
		Message: "the kind is read by this profile", ObservedGeneration: p.Generation, LastTransitionTime: now,
	}
	if r := p.Refused; r != nil {
		want.Status, want.Reason, want.Message = metav1.ConditionFalse, string(r.Reason), r.Message
		want.Message = want.Message[:min(len(want.Message), messageLength)]
	}
	all := slices.Clone(p.Conditions)
	differs := meta.SetStatusCondition(&all, want)
	return *meta.FindStatusCondition(all, api.ProfileAccepted), differs
}
