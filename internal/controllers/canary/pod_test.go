package canary

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A replica that cannot reach the API server stops leading. Its pod must not keep the
// condition of the leader.
func TestFailedConditionIsRetried(t *testing.T) {
	client := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "a"}})
	away, patches := false, 0
	client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		return away, nil, errors.New("no route to host")
	})
	reason := func() string {
		pod, err := client.CoreV1().Pods("own").Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.Len(t, pod.Status.Conditions, 1)
		return pod.Status.Conditions[0].Reason
	}
	rep := &Reporter{Record: NewRecord(false), Pod: &Pod{Client: client.CoreV1(), Namespace: "own", Name: "a"}}
	rep.Started(t.Context())
	assert.Equal(t, reasonNotRun, reason())
	away = true
	rep.Stopped(t.Context())
	rep.Pod.Retry(t.Context())
	assert.Equal(t, reasonNotRun, reason())
	away = false
	rep.Pod.Retry(t.Context())
	assert.Equal(t, reasonNotLeading, reason())
	assert.Equal(t, 4, patches)
	rep.Pod.Retry(t.Context())
	assert.Equal(t, 4, patches, "it is written")
}
