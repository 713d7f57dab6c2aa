//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/replay"
)

const (
	// handoversVariable is the number of forced handovers; by default, one of each
	// kind.
	handoversVariable = "OVERRULE_HANDOVERS"
	// pairsPerHandover are written before, during and after each: half of them
	// closely together, the others over the time that a lease takes to run out.
	pairsPerHandover        = 40
	pairEvery, lateEvery    = 50 * time.Millisecond, 400 * time.Millisecond
	pairsBeforeTheHandover  = 6
	writersDuringHandovers  = 2
	replicasDuringHandovers = 3
)

// No pair passes, and no write of a kubectl is lost, when the leader stops.
func TestGracefulHandover(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprintf("replicas=%d", n), func(t *testing.T) {
			if n == 3 {
				env.Long(t)
			}
			testHandovers(t, shared(t), n, 2, handoverKinds()[:1])
		})
	}
}

// The same for all kinds of handovers.
func TestHandovers(t *testing.T) {
	env.Long(t)
	kinds := handoverKinds()
	testHandovers(t, alone(t, env.WithControllers()), replicasDuringHandovers, number(t, handoversVariable, len(kinds)), kinds)
}

// The same while connections to the API server and between replicas are slow,
// half-open or reset.
func TestFaultsOnTheWay(t *testing.T) {
	env.Long(t)
	faults := connectionFaults()
	testHandovers(t, alone(t, env.WithControllers()), replicasDuringHandovers, len(faults), faults)
}

// handoverTest is a test of handovers: pairs of writes and kubectl-like writers.
type handoverTest struct {
	pairs
	t        *testing.T
	replicas *replicaSet
	writers  *kubectlWriters
	none     int
}

func testHandovers(t *testing.T, c *cluster, replicas, n int, kinds []handoverKind) {
	t.Helper()
	h := &handoverTest{t: t, pairs: c.preparePairs(t, "handovers", n*pairsPerHandover, twoWay(pairSorts())...)}
	h.replicas = newReplicaSet(t, c, replicas, localhost)
	recorder := replay.Record(t, c.Env)
	h.writers = startKubectlWriters(t, h.testNamespaces, writersDuringHandovers)
	for i := range n {
		h.force(i, kinds[i%len(kinds)])
	}
	h.writers.end()
	_, _, lost := h.writers.take()
	assert.Empty(t, lost)
	recorder.RequireSound(t)
	t.Logf("%d handovers with %d replicas: none passed of %d pairs in %d", n, replicas, h.none, len(h.sorts))
}

// twoWay returns the sorts with a denial whichever write is stored first.
func twoWay(sorts []pairSort) []pairSort {
	var out []pairSort
	for _, s := range sorts {
		if !s.oneWay {
			out = append(out, s)
		}
	}
	return out
}

// force forces one handover while pairs are written.
func (h *handoverTest) force(i int, kind handoverKind) {
	h.t.Helper()
	leader := h.replicas.leader()
	wait := h.begin(i*pairsPerHandover, (i+1)*pairsPerHandover)
	began := time.Now()
	kind.force(h.replicas, leader)
	took := time.Since(began)
	next := h.replicas.settle()
	wait()
	stored := h.requireOneOfEach(i*pairsPerHandover, (i+1)*pairsPerHandover)
	writes, longest, lost := h.writers.take()
	if kind.loses {
		h.t.Logf("%d writes of kubectl were lost: %s", len(lost), strings.Join(lost, "; "))
	} else {
		assert.Empty(h.t, lost, "writes of kubectl that were lost: %s", kind.name)
	}
	h.t.Logf("%s (%s to %s): back to normal after %.1f s, slowest of %d writes %.1f s, %s; handovers of the leader: %.0f in %.2f s",
		kind.name, leader.client.user, next.client.user, took.Seconds(), writes, longest.Seconds(), stored,
		metric(h.t, next.Server, "overrule_handover_seconds_count"), metric(h.t, next.Server, "overrule_handover_seconds_sum"))
}

// begin writes the pairs of a range one after another, without waiting for
// responses. It returns once the first of them have been written, and a function
// that waits for the others.
func (h *handoverTest) begin(from, to int) (wait func()) {
	clients := h.replicas.clients()
	var early, all sync.WaitGroup
	early.Add(pairsBeforeTheHandover)
	all.Go(func() {
		for i := from; i < to; i++ {
			all.Go(func() {
				h.writePair(i, clients[i%len(clients)], clients[(i+1)%len(clients)])
				if i-from < pairsBeforeTheHandover {
					early.Done()
				}
			})
			if i-from < (to-from)/2 {
				time.Sleep(pairEvery)
			} else {
				time.Sleep(lateEvery)
			}
		}
	})
	early.Wait()
	return all.Wait
}

// requireOneOfEach requires that not both writes of any pair of a range were
// stored, whatever their clients know. It returns the counts.
func (h *handoverTest) requireOneOfEach(from, to int) pairCounts {
	h.t.Helper()
	var out pairCounts
	var slips []string
	admin := h.replicas.members[0].client
	for i := from; i < to; i++ {
		s := h.sorts[i]
		first, err := h.pairWrite(s.first, i).stored(h.t.Context(), admin)
		require.NoError(h.t, err)
		second, err := h.pairWrite(s.second, i).stored(h.t.Context(), admin)
		require.NoError(h.t, err)
		switch {
		case first && second:
			out.both++
			slips = append(slips, fmt.Sprintf("%s %d", s.name, i))
			name := h.pairText("pair-N", i)
			h.t.Logf("the evaluations of %s:\n%s", name, h.replicas.linesOf(`"`+name+`"`, "-"+name+`"`, "/"+name+`"`))
		case first || second:
			out.one++
		default:
			out.none++
		}
	}
	h.none += out.none
	assert.Empty(h.t, slips, "pairs of which both passed")
	return out
}
