package snapshot_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/snapshot"
)

func TestMarksHash(t *testing.T) {
	annotations := map[string]string{"overrule.dev/effective-policy": "x", "overrule.dev/outcome": "y", "overrule.dev/PaintAffected": "true"}
	conditions := []metav1.Condition{
		{Type: "overrule.dev/PaintAffected", Status: metav1.ConditionTrue, Reason: "Affected", Message: "by p", ObservedGeneration: 3},
		{Type: "overrule.dev/LabelAffected", Status: metav1.ConditionTrue, Reason: "Affected"},
	}
	want := snapshot.MarksHash(annotations, conditions)
	assert.NotZero(t, want)
	assert.Zero(t, snapshot.MarksHash(nil, nil))
	with := func(edit func(map[string]string, []metav1.Condition) []metav1.Condition) uint64 {
		a, c := maps.Clone(annotations), slices.Clone(conditions)
		c = edit(a, c)
		return snapshot.MarksHash(a, c)
	}
	for name, c := range map[string]struct {
		edit func(map[string]string, []metav1.Condition) []metav1.Condition
		same bool
	}{
		"another annotation": {func(a map[string]string, c []metav1.Condition) []metav1.Condition {
			a["overrule.dev/acknowledge-blast-radius"], a["team"] = "z", "toys"
			return c
		}, true},
		"an empty one of ours": {func(a map[string]string, c []metav1.Condition) []metav1.Condition {
			a["overrule.dev/LabelAffected"] = ""
			return c
		}, true},
		"the condition of another writer": {func(_ map[string]string, c []metav1.Condition) []metav1.Condition {
			return append(c, metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue})
		}, true},
		"one of ours that is not met": {func(_ map[string]string, c []metav1.Condition) []metav1.Condition {
			return append(c, metav1.Condition{Type: "overrule.dev/OtherAffected", Status: metav1.ConditionFalse})
		}, true},
		"another order": {func(_ map[string]string, c []metav1.Condition) []metav1.Condition {
			c[0], c[1] = c[1], c[0]
			return c
		}, true},
		"another time": {func(_ map[string]string, c []metav1.Condition) []metav1.Condition {
			c[0].LastTransitionTime = metav1.Unix(1, 0)
			return c
		}, true},
		"another text": {func(a map[string]string, c []metav1.Condition) []metav1.Condition {
			a["overrule.dev/outcome"] = "z"
			return c
		}, false},
		"one that went": {func(a map[string]string, c []metav1.Condition) []metav1.Condition {
			delete(a, "overrule.dev/outcome")
			return c
		}, false},
		"another message": {func(_ map[string]string, c []metav1.Condition) []metav1.Condition { c[0].Message = "by q"; return c }, false},
		"another reason":  {func(_ map[string]string, c []metav1.Condition) []metav1.Condition { c[0].Reason = "Odd"; return c }, false},
		"an older generation": {func(_ map[string]string, c []metav1.Condition) []metav1.Condition {
			c[0].ObservedGeneration = 2
			return c
		}, false},
	} {
		assert.Equal(t, c.same, want == with(c.edit), name)
	}
}

func TestMarksOf(t *testing.T) {
	o := &metav1.ObjectMeta{Generation: 7, Labels: map[string]string{"overrule.dev/refresh": "false"}}
	m := snapshot.MarksOf(o, []metav1.Condition{{Type: "Accepted"}, {Type: "Programmed"}, {Type: "overrule.dev/PaintAffected"}})
	assert.Equal(t, snapshot.Marks{Generation: 7, Others: 2, OptedOut: true}, m)
	o.Labels["overrule.dev/refresh"] = "true"
	o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	assert.Equal(t, snapshot.Marks{Generation: 7, Deleting: true}, snapshot.MarksOf(o, nil))
}
