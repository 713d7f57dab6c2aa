//go:build e2e

package replicas

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/faultproxy"
	"overrule.dev/overrule/test/replay"
)

// fault disturbs replicas of which one leads, and returns once that is over: with a new
// leader if it stopped, and the same one otherwise.
type fault struct {
	name   string
	inject func(r *replicaSet, leader *member)
	// breaks: the API server gets no response on the connections to a replica that it
	// returns: each can lose one call. Nil if all calls are answered.
	breaks func(r *replicaSet, leader *member) *member
	// denies: a leader that cannot read from the API server denies a write that it has to
	// read more objects for, and not with code 429.
	denies bool
	// after is what becomes of the leader.
	after leaderAfter
	// handsOver: the next leader does not wait until the Lease has run out.
	handsOver bool
}

// leaderAfter is whether the leader stays the same.
type leaderAfter int

const (
	either leaderAfter = iota
	stays
	changes
)

func ofLeader(_ *replicaSet, leader *member) *member   { return leader }
func ofFollower(r *replicaSet, leader *member) *member { return r.except(leader)[0] }
func hold() faultproxy.Faults {
	return faultproxy.Both(faultproxy.Direction{Behavior: faultproxy.Hold})
}
func loseResponses() faultproxy.Faults {
	return faultproxy.Faults{ToClient: faultproxy.Direction{Behavior: faultproxy.Sever}}
}

var (
	graceful = fault{name: "graceful", inject: (*replicaSet).terminate, after: changes, handsOver: true}
	killed   = fault{name: "killed", inject: (*replicaSet).kill, breaks: ofLeader, after: changes}
)

// endpointLag is the time until a change of a Service's endpoints reaches all nodes.
const endpointLag = 300 * time.Millisecond

// terminate stops the leader as a rollout does.
func (r *replicaSet) terminate(leader *member) {
	require.NoError(r.t, leader.Signal(syscall.SIGTERM))
	time.Sleep(endpointLag)
	r.serve(r.except(leader)...)
	r.leader(r.except(leader)...)
	<-leader.Done()
	require.Zero(r.t, leader.Code(), leader.Tail())
	leader.start(r.t)
}

func (r *replicaSet) kill(leader *member) {
	require.NoError(r.t, leader.Signal(syscall.SIGKILL))
	r.serve(r.except(leader)...)
	r.leader(r.except(leader)...)
	leader.start(r.t)
}

// pairsPerFault are written before, during and after each: a quarter of them before it,
// and as many after it.
const (
	pairsPerFault = 12
	pairEvery     = leaseDuration / pairsPerFault
	// moreWrites are those of each writer that the leader answers after a fault: each of
	// its kinds of writes.
	moreWrites = 5
)

// testFaults injects faults one after another while conflicting pairs and writes with
// known verdicts are written: not both writes of any pair are stored, no write has
// another verdict, and each gets one.
func testFaults(t *testing.T, replicas int, faults ...fault) {
	t.Helper()
	p := preparePairs(t, len(faults)*pairsPerFault, twoWay(pairSorts())...)
	r := newReplicaSet(t, replicas)
	w := startWriters(t, r.plane)
	recorder := replay.Record(t, r.plane)
	w.awaitWrites(moreWrites)
	for i, f := range faults {
		from, to := i*pairsPerFault, (i+1)*pairsPerFault
		p.writeRange(from, from+pairsPerFault/4, 0)
		leader := r.leader()
		term := r.term()
		w.during(f.name)
		lost := func() int { return 0 }
		if f.breaks != nil {
			lost = f.breaks(r, leader).connections()
		}
		var during sync.WaitGroup
		during.Go(func() { p.writeRange(from+pairsPerFault/4, to-pairsPerFault/4, pairEvery) })
		f.inject(r, leader)
		most := lost() // the replica may have been replaced
		r.settle()
		if f.handsOver {
			n, _ := r.leader().metric("overrule_handover_seconds_count", "graceful")
			assert.Positive(t, n, "%s: the leader hands over", f.name)
		}
		during.Wait()
		w.awaitWrites(moreWrites)
		p.writeRange(to-pairsPerFault/4, to, 0)
		p.requireNotBoth(from, to)
		interrupted, denied := w.during("")
		assert.LessOrEqual(t, interrupted, most, "%s: writes without a response", f.name)
		if !f.denies {
			assert.Empty(t, denied, "%s: writes that were denied", f.name)
		}
		if f.after != either {
			assert.Equal(t, f.after == stays, r.term() == term, "%s: the leader stays the same", f.name)
		}
		t.Logf("%s: %d writes had no response, of at most %d; %d were denied", f.name, interrupted, most, len(denied))
	}
	w.end()
	recorder.RequireSound(t)
}

// writeRange writes the pairs of a range, one after another, without waiting for
// responses, and then waits for these.
func (p *pairs) writeRange(from, to int, every time.Duration) {
	var group sync.WaitGroup
	for i := from; i < to; i++ {
		group.Go(func() { p.writePair(i) })
		time.Sleep(every)
	}
	group.Wait()
}

// No conflicting pair passes, and no write is lost, when the leader stops and when it is
// killed.
func TestHandover(t *testing.T) { testFaults(t, 2, graceful, killed) }

// Two replicas evaluate as one.
func TestConflictingWrites(t *testing.T) {
	const each = 3
	sorts := pairSorts()
	conflicting, inFlight := preparePairs(t, each*len(sorts), sorts...), preparePairs(t, 2*len(narrow(pairSorts())), narrow(pairSorts())...)
	others := preparePairs(t, 2*len(narrow(pairSorts())), narrow(pairSorts())...)
	r := newReplicaSet(t, 2)
	recorder := replay.Record(t, r.plane)
	conflicting.requireNoSlip(r)
	others.writeOthers()
	assert.Zero(t, others.tooMany.Load(), "writes of different paths pass at once, and not after a retry")

	// The first write is in flight while the second is evaluated: it is stored, and the
	// leader observes it later.
	r.leader().api.Set(faultproxy.Faults{ToClient: faultproxy.Direction{Delay: 400 * time.Millisecond}})
	for i, s := range inFlight.sorts {
		writes := []pairWrite{inFlight.write(s.first, inFlight.from+i), inFlight.write(s.second, inFlight.from+i)}
		if i >= len(inFlight.sorts)/2 {
			writes[0], writes[1] = writes[1], writes[0]
		}
		_, err := writes[0].send(t.Context(), inFlight.admin, false)
		require.NoError(t, err, s.name)
		_, err = writes[1].send(t.Context(), inFlight.admin, false)
		assert.True(t, err != nil && deniedAs(err, s), "%s: %v", s.name, err)
	}
	recorder.RequireSound(t)
}

// requireNoSlip writes all pairs, and requires that one write of each passes, and that
// all replicas got some of them.
func (p *pairs) requireNoSlip(r *replicaSet) {
	p.t.Helper()
	assert.Empty(p.t, p.writeAll(), "pairs of which both passed")
	for _, m := range r.except(r.leader()) {
		answered, _ := m.metric("overrule_forwarded_total", `result="answered"`)
		assert.Positive(p.t, answered, "a follower forwards")
		failed, _ := m.metric("overrule_forwarded_total", `result="failed"`)
		assert.Zero(p.t, failed)
	}
}
