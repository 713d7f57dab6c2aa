//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// TestLeaderThatLosesItsLeaseFollows takes the Lease from a leader, as happens when the API
// server is slow for too long. The server stops evaluating, and leads again once the
// Lease has run out.
func TestLeaderThatLosesItsLeaseFollows(t *testing.T) {
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

	soon(t, func() bool { return metric(t, s, "overrule_leader") == 0 }, "it leads without the Lease")
	assert.Contains(t, s.Log(), `"msg":"stepping down"`)
	soon(t, func() bool { return metric(t, s, "overrule_leader") == 1 }, "it does not lead again")
	assert.NotEqual(t, "other-holder", c.leader(t))
	select {
	case <-s.Done():
		t.Error("it ended")
	default:
	}
}
