//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// TestLeaderDrainsAfterLosingLease takes the lease from a leader, as happens when
// the API server is slow for too long. The server exits, so that it is restarted,
// but first rejects new connections and drains the open ones.
func TestLeaderDrainsAfterLosingLease(t *testing.T) {
	env.Long(t)
	c := shared(t)
	s := c.start(t)
	require.NotEmpty(t, c.leader(t))
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	leases := client.CoordinationV1().Leases(server.Namespace)
	soon(t, func() bool {
		lease, err := leases.Get(t.Context(), server.Name, metav1.GetOptions{})
		require.NoError(t, err)
		other, now := "other-holder", metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &other, &now
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err == nil // otherwise the leader renewed it at the same time
	}, "the lease cannot be written")
	t.Cleanup(func() { // so that no other server waits for its expiry
		assert.NoError(t, leases.Delete(context.Background(), server.Name, metav1.DeleteOptions{}))
	})

	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("it keeps running without the lease")
	}
	assert.Equal(t, 1, s.Code(), "so that it is restarted")
	assert.Contains(t, s.Log(), "leader election lost")
	assert.Contains(t, s.Log(), `"msg":"drained"`)
}
