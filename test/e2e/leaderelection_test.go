//go:build e2e

package e2e

import (
	"strings"
	"testing"

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
	soon(t, func() bool { return metric(t, s, "overrule_leader") == 1 }, "it does not lead")
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

	soon(t, func() bool { return strings.Contains(s.Log(), `"msg":"stepping down"`) }, "it leads without the Lease")
	soon(t, func() bool { return c.leader(t) != "other-holder" }, "it does not take the Lease again")
	soon(t, func() bool { return metric(t, s, "overrule_leader") == 1 }, "it does not lead again")
	select {
	case <-s.Done():
		t.Error("it ended")
	default:
	}
}
