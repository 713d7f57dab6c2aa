//go:build e2e

package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/env"
)

// The benchmarks of the real API server also run at a small size with the tests,
// since they do not run on each change.
func TestAPIServerBenchmarksAtSmallSize(t *testing.T) {
	env.Long(t)
	c := newCluster(t, 50)
	t.Run("each write goes its way", func(t *testing.T) {
		a, requests, kubectls := newApplying(t, c), samples{}, samples{}
		a.rounds(t, 3, a.request, requests)
		a.rounds(t, 2, a.kubectl, kubectls)
		for _, w := range []string{"none", "nothing", "overrule"} {
			assert.Len(t, requests[w], 3)
			assert.Len(t, kubectls[w], 2)
		}
	})
	// Last: the webhooks that the server registers by itself do not distinguish
	// variants.
	t.Run("starts take turns, and end ready", func(t *testing.T) {
		s := newStarting(t, c)
		s.rounds(t, 2)
		for name, of := range map[string]starts{"overrule": s.overrule, "informer": s.informer} {
			assert.Len(t, of.took, 2, name)
			assert.Len(t, of.used, 2, name)
		}
	})
}
