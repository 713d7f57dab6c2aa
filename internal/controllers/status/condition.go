package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
)

// maxMessageLength is the maximum length of the message of a condition.
const maxMessageLength = 32768

// condition returns the desired condition, and whether it differs from the current one.
// The transition time changes with the status only.
func condition(s cache.Status, now metav1.Time) (metav1.Condition, bool) {
	want := metav1.Condition{
		Type: api.ConditionAccepted, Status: metav1.ConditionTrue, Reason: s.Reason,
		Message: truncate(s.Message), ObservedGeneration: s.Generation, LastTransitionTime: now,
	}
	if s.Refused {
		want.Status = metav1.ConditionFalse
	}
	all := slices.Clone(s.Conditions)
	differs := meta.SetStatusCondition(&all, want)
	return *meta.FindStatusCondition(all, api.ConditionAccepted), differs
}

// truncate shortens a message to maxMessageLength without splitting a rune.
func truncate(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessageLength)], "")
}
