//go:build e2e && long

package replicas

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/faultproxy"
	"overrule.dev/overrule/test/replay"
	"overrule.dev/overrule/test/server"
)

// The sizes of the tests: "make proof" sets them.
const (
	pairsVariable     = "OVERRULE_PAIRS"
	handoversVariable = "OVERRULE_HANDOVERS"
)

// number returns the value of an environment variable.
func number(t *testing.T, variable string, byDefault int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// faultTime is how long a fault of connections lasts: longer than the webhook's timeout.
const faultTime = 8 * time.Second

// The faults, in groups of which each takes less than three minutes.
var faultGroups = []struct {
	name   string
	faults []fault
}{
	{"processes", []fault{
		graceful,
		{name: "graceful, without a connection between replicas", inject: (*replicaSet).terminateAlone, after: changes},
		killed,
		{name: "the leader hangs for longer than its lease", inject: (*replicaSet).hangLong, breaks: ofLeader, after: changes},
		{name: "the leader hangs for a moment", inject: (*replicaSet).hangShortly, after: stays},
		{name: "a follower hangs", inject: (*replicaSet).hangFollower, breaks: ofFollower, after: stays},
		{name: "the authority is replaced", inject: (*replicaSet).replaceAuthority, after: changes},
	}},
	{"leases", []fault{
		{name: "no connection to the API server", inject: untilAnotherLeads(hold()), denies: true, after: changes},
		{name: "responses of the API server are lost", inject: untilAnotherLeads(loseResponses()), denies: true, after: changes},
		{name: "the API server restarts", inject: (*replicaSet).restartAPIServer, denies: true},
		{name: "the Lease is deleted", inject: (*replicaSet).deleteLease, after: changes},
		{name: "the Lease names another holder", inject: (*replicaSet).editLease, after: changes},
		{name: "the Lease cannot be read or written", inject: (*replicaSet).forbidLease},
	}},
	{"network", []fault{
		{name: "all are slow", inject: during(faultproxy.Both(faultproxy.Direction{Delay: 100 * time.Millisecond}), apis, peers)},
		{name: "those between replicas are half-open", inject: during(hold(), peers), after: stays},
		{name: "responses of other replicas are lost", inject: during(loseResponses(), peers), after: stays},
		{name: "all are reset again and again", inject: (*replicaSet).resetAll},
		{name: "followers are stale", inject: during(faultproxy.Faults{ToClient: faultproxy.Direction{Behavior: faultproxy.Hold}}, apisOfFollowers), after: stays},
	}},
}

// All kinds of faults, each once; OVERRULE_HANDOVERS is their number in each group.
func TestFaults(t *testing.T) {
	for _, g := range faultGroups {
		t.Run(g.name, func(t *testing.T) {
			var faults []fault
			for i := range number(t, handoversVariable, len(g.faults)) {
				faults = append(faults, g.faults[i%len(g.faults)])
			}
			testFaults(t, 3, faults...)
		})
	}
}

// Many pairs; OVERRULE_PAIRS is their number.
func TestManyConflictingWrites(t *testing.T) {
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprintf("replicas=%d", n), func(t *testing.T) {
			p := preparePairs(t, number(t, pairsVariable, 60), pairSorts()...)
			r := newReplicaSet(t, n)
			recorder := replay.Record(t, r.plane)
			p.requireNoSlip(r)
			recorder.RequireSound(t)
		})
	}
}

// Without coordination both writes of a pair can pass, and the replay finds each such
// pair: otherwise the other tests see nothing.
func TestUncoordinatedWritesAreFound(t *testing.T) {
	p := preparePairs(t, number(t, pairsVariable, 60), twoWay(pairSorts())...)
	r := newReplicaSet(t, 1)
	require.NoError(t, r.members[0].Stop())
	var servers []string
	for range 2 {
		s, err := r.site.Boot(t.Context(), server.Options{Unprobed: true, Args: append(r.serviceFlags(), "--coordination=none")})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Stop()) })
		servers = append(servers, s.Webhook)
	}
	r.service.SetTargets(servers...)
	recorder := replay.Record(t, r.plane)
	slips := p.writeAll()
	assert.NotEmpty(t, slips)
	report, err := recorder.Check(t.Context())
	require.NoError(t, err)
	assert.Len(t, report.Findings, len(slips))
}

// terminateAlone stops a leader that cannot hand over what is in flight.
func (r *replicaSet) terminateAlone(leader *member) {
	for _, m := range r.members {
		m.peer.Set(hold())
	}
	r.terminate(leader)
}

// hangLong suspends the leader until another one leads.
func (r *replicaSet) hangLong(leader *member) {
	require.NoError(r.t, leader.Signal(syscall.SIGSTOP))
	r.serve(r.except(leader)...)
	r.leader(r.except(leader)...)
	require.NoError(r.t, leader.Signal(syscall.SIGCONT))
	leader.awaitFollower()
}

// hangShortly suspends the leader for a small part of its lease, and of the webhook's
// timeout.
func (r *replicaSet) hangShortly(leader *member) {
	require.NoError(r.t, leader.Signal(syscall.SIGSTOP))
	time.Sleep(time.Second)
	require.NoError(r.t, leader.Signal(syscall.SIGCONT))
}

// hangFollower suspends a follower until its cache is stale.
func (r *replicaSet) hangFollower(leader *member) {
	m := ofFollower(r, leader)
	require.NoError(r.t, m.Signal(syscall.SIGSTOP))
	r.serve(r.except(m)...)
	time.Sleep(cache.StaleAfter + time.Second)
	require.NoError(r.t, m.Signal(syscall.SIGCONT))
}

// replaceAuthority deletes the serving authority. A replica restores it, and stages a new one. The
// replica that is started once that signs gets new connections, which verify it.
func (r *replicaSet) replaceAuthority(leader *member) {
	secrets := r.clients().CoreV1().Secrets(server.Namespace)
	signing := func() string {
		stored, err := secrets.Get(r.t.Context(), "overrule-ca", metav1.GetOptions{})
		require.NoError(r.t, client.IgnoreNotFound(err))
		return string(stored.Data[corev1.TLSCertKey])
	}
	before := signing()
	require.NoError(r.t, secrets.Delete(r.t.Context(), "overrule-ca", metav1.DeleteOptions{}))
	env.Soon(r.t, func() bool { now := signing(); return now != "" && now != before }, "the old authority signs")
	r.terminate(leader)
}

// untilAnotherLeads disturbs the connections between the leader and the API server.
func untilAnotherLeads(f faultproxy.Faults) func(*replicaSet, *member) {
	return func(r *replicaSet, leader *member) {
		leader.api.Set(f)
		r.leader(r.except(leader)...)
		leader.api.Set(faultproxy.Faults{})
		leader.awaitFollower()
	}
}

func (r *replicaSet) restartAPIServer(*member) {
	require.NoError(r.t, r.plane.RestartAPIServer(r.t.Context()))
}

func (r *replicaSet) deleteLease(leader *member) {
	require.NoError(r.t, r.clients().CoordinationV1().Leases(server.Namespace).Delete(r.t.Context(), server.Name, metav1.DeleteOptions{}))
	leader.awaitFollower()
	r.leader()
}

// editLease gives the Lease to a holder that does nothing with it.
func (r *replicaSet) editLease(leader *member) {
	r.updateLease(func(lease *coordinationv1.Lease) {
		other, now := "other-holder", metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &other, &now
	})
	leader.awaitFollower()
	r.leader()
}

// updateLease edits the Lease, which the leader renews at the same time.
func (r *replicaSet) updateLease(edit func(*coordinationv1.Lease)) {
	r.t.Helper()
	env.Soon(r.t, func() bool {
		lease := r.lease()
		edit(lease)
		_, err := r.clients().CoordinationV1().Leases(server.Namespace).Update(r.t.Context(), lease, metav1.UpdateOptions{})
		return err == nil
	}, "the Lease cannot be written")
}

// forbidLease takes the rights to the Lease away until no replica leads.
func (r *replicaSet) forbidLease(leader *member) {
	roles := r.clients().RbacV1().Roles(server.Namespace)
	role, err := roles.Get(r.t.Context(), server.Name, metav1.GetOptions{})
	require.NoError(r.t, err)
	set := func(rules []rbacv1.PolicyRule) {
		role.Rules = rules
		role, err = roles.Update(context.WithoutCancel(r.t.Context()), role, metav1.UpdateOptions{})
		require.NoError(r.t, err)
	}
	before := role.Rules
	set(slices.DeleteFunc(slices.Clone(before), func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "leases") }))
	leader.awaitFollower()
	set(before)
	r.leader()
}

// proxiesOf returns the proxies of a fault.
type proxiesOf func(r *replicaSet, leader *member) []*faultproxy.Proxy

func peers(r *replicaSet, _ *member) (out []*faultproxy.Proxy) {
	for _, m := range r.members {
		out = append(out, m.peer)
	}
	return out
}

func apis(r *replicaSet, _ *member) []*faultproxy.Proxy { return apisOfFollowers(r, nil) }

func apisOfFollowers(r *replicaSet, leader *member) (out []*faultproxy.Proxy) {
	for _, m := range r.except(leader) {
		out = append(out, m.api)
	}
	return out
}

// during disturbs connections for faultTime.
func during(f faultproxy.Faults, of ...proxiesOf) func(*replicaSet, *member) {
	return func(r *replicaSet, leader *member) {
		for _, each := range of {
			for _, p := range each(r, leader) {
				p.Set(f)
			}
		}
		time.Sleep(faultTime)
	}
}

// resetAll resets the connections of replicas to each other and to the API server.
func (r *replicaSet) resetAll(leader *member) {
	for range 8 {
		for _, p := range append(peers(r, leader), apis(r, leader)...) {
			p.Reset()
		}
		time.Sleep(faultTime / 8)
	}
}
