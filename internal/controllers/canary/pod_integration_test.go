//go:build integration

package canary

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
)

// podFixture is a pod on a real API server, and a Reporter for it.
type podFixture struct {
	*Reporter
	admin    kubernetes.Interface
	recorder *events.FakeRecorder
	log      []string
}

// newPodFixture creates them; the Reporter writes as a user with the given rules.
func newPodFixture(t *testing.T, plane *env.Env, name string, rules ...rbacv1.PolicyRule) *podFixture {
	t.Helper()
	admin := clientOf(t, plane.Config)
	_, err := admin.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "overrule", Image: "overrule:dev"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	s := &podFixture{admin: admin, recorder: events.NewFakeRecorder(10)}
	log := funcr.New(func(_, args string) { s.log = append(s.log, args) }, funcr.Options{})
	s.Reporter = &Reporter{
		Record: NewRecord(false), Events: s.recorder, Note: strings.ToUpper, Log: log,
		Pod: &Pod{Client: clientOf(t, plane.MustAddUser(t, name, nil, rules...).Config).CoreV1(), Namespace: "default", Name: name, Log: log},
	}
	return s
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// condition returns the condition of the pod; nil if it has none.
func (s *podFixture) condition(t *testing.T) *corev1.PodCondition {
	t.Helper()
	pod, err := s.admin.CoreV1().Pods("default").Get(t.Context(), s.Pod.Name, metav1.GetOptions{})
	require.NoError(t, err)
	for _, c := range pod.Status.Conditions {
		if c.Type == ConditionPassing {
			return &c
		}
	}
	return nil
}

// assertCondition waits for a condition.
func (s *podFixture) assertCondition(t *testing.T, status corev1.ConditionStatus, reason, message string) {
	t.Helper()
	c := s.condition(t)
	require.NotNil(t, c)
	assert.Equal(t, []string{string(status), reason, message}, []string{string(c.Status), c.Reason, c.Message})
}

// events returns the events that were recorded since the last call.
func (s *podFixture) events() []string {
	var out []string
	for len(s.recorder.Events) > 0 {
		out = append(out, <-s.recorder.Events)
	}
	return out
}

func result(o Outcome, response string) Result {
	return newResult(api.Deny, []Attempt{{Sent: "a write", Response: response, Outcome: o}})
}

var canPatchStatus = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}}

func TestPodConditionAndEvents(t *testing.T) {
	plane := env.Start(t)
	s := newPodFixture(t, plane, "reports", canPatchStatus)
	s.Pod.Idle(t.Context())
	s.assertCondition(t, corev1.ConditionUnknown, "NotLeading", notLeading)
	s.Started(t.Context())
	s.assertCondition(t, corev1.ConditionUnknown, "NotRunYet", "this replica is the leader and has not run the canary yet")
	s.Pod.Idle(t.Context())
	s.assertCondition(t, corev1.ConditionUnknown, "NotRunYet", "this replica is the leader and has not run the canary yet")
	assert.Empty(t, s.events())

	const good = "all dry-run writes were evaluated as expected"
	s.Report(t.Context(), result(Passed, "fine"))
	s.assertCondition(t, corev1.ConditionTrue, "CanaryPassed", good)
	assert.Equal(t, []string{"Normal CanaryPassed " + strings.ToUpper(good)}, s.events())
	before := s.condition(t)
	s.Report(t.Context(), result(Failed, "not called"))
	s.assertCondition(t, corev1.ConditionFalse, "CanaryFailed", "a write: not called")
	assert.Equal(t, []string{"Warning CanaryFailed A WRITE: NOT CALLED"}, s.events())
	s.Report(t.Context(), result(Failed, "still"))
	s.assertCondition(t, corev1.ConditionFalse, "CanaryFailed", "a write: still")
	assert.Empty(t, s.events(), "the outcome is the same")
	s.Report(t.Context(), result(Untried, "no right"))
	s.assertCondition(t, corev1.ConditionUnknown, "CanaryUntried", "a write: no right")
	assert.Len(t, s.events(), 1)
	assert.False(t, s.condition(t).LastProbeTime.Before(&before.LastProbeTime))
	s.Stopped(t.Context())
	s.assertCondition(t, corev1.ConditionUnknown, "NotLeading", notLeading)
	require.NoError(t, s.Record.Problem())

	t.Run("the transition time changes with the status", func(t *testing.T) {
		long := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
		s.Pod.last.LastTransitionTime = long
		s.Pod.SetCondition(t.Context(), corev1.ConditionUnknown, "Other", "")
		assert.True(t, s.condition(t).LastTransitionTime.Equal(&long))
		s.Pod.SetCondition(t.Context(), corev1.ConditionTrue, "Other", "")
		assert.True(t, s.condition(t).LastTransitionTime.After(long.Time))
	})
	t.Run("a missing permission is logged once", func(t *testing.T) {
		s := newPodFixture(t, plane, "forbidden")
		s.Report(t.Context(), result(Failed, "x"))
		s.Report(t.Context(), result(Failed, "x"))
		assert.Nil(t, s.condition(t))
		all := strings.Join(s.log, "\n")
		assert.Equal(t, 1, strings.Count(all, "write condition overrule.dev/CanaryPassing of pod default/forbidden: "), all)
		assert.Contains(t, all, `cannot patch resource \"pods/status\"`)
		require.Error(t, s.Record.Problem())
		assert.Len(t, s.events(), 1)
	})
	t.Run("a missing pod name is logged once", func(t *testing.T) {
		s := newPodFixture(t, plane, "nameless", canPatchStatus)
		s.Pod.Name = ""
		s.Started(context.Background())
		s.Report(t.Context(), result(Passed, "x"))
		assert.Equal(t, 1, strings.Count(strings.Join(s.log, "\n"), "canary condition is not written"))
		assert.Empty(t, s.events())
	})
	t.Run("another pod name", func(t *testing.T) {
		s := newPodFixture(t, plane, "other", canPatchStatus)
		s.Pod.Name = "nowhere"
		s.Report(t.Context(), result(Passed, "x"))
		assert.Contains(t, strings.Join(s.log, "\n"), `pods \"nowhere\" not found`)
	})
}
