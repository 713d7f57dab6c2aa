//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/faultproxy"
)

// watchDelay is how late a leader observes what was stored.
const watchDelay = 400 * time.Millisecond

// The second write of a pair is denied while the first one is in flight: it is
// stored, and not observed. TestPairsConflict has what follows.
func TestPairsConflictInFlight(t *testing.T) {
	env.Long(t)
	c := shared(t)
	sorts := narrow(pairSorts()) // the others read more from the API server
	p := c.preparePairs(t, "pairs-flight", 2*len(sorts), sorts...)
	r := newReplicaSet(t, c, 1, localhost)
	client := c.newPairClient(t, "no-retry", false)
	r.leader().api.Set(faultproxy.Faults{ToClient: faultproxy.Direction{Delay: watchDelay}})
	for i, s := range p.sorts {
		writes := []pairWrite{p.pairWrite(s.first, i), p.pairWrite(s.second, i)}
		name := s.name
		if i >= len(sorts) {
			writes[0], writes[1] = writes[1], writes[0]
			name += ", the second write first"
		}
		t.Run(name, func(t *testing.T) {
			_, err := writes[0].send(t.Context(), r.members[0].client, false)
			require.NoError(t, err)
			_, err = writes[1].send(t.Context(), client, false)
			require.Error(t, err)
			assert.True(t, deniedAs(err, s) || apierrors.IsTooManyRequests(err), "%v", err)
		})
	}
}
