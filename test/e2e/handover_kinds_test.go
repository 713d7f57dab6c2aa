//go:build e2e

package e2e

import (
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"overrule.dev/overrule/test/faultproxy"
	"overrule.dev/overrule/test/server"
)

// endpointLag is the time until a change of a Service's endpoints reaches all
// nodes.
const endpointLag = 300 * time.Millisecond

// handoverKind forces the leader to hand over. It returns once there is a new
// leader, or the same one again.
type handoverKind struct {
	name  string
	force func(r *replicaSet, leader *member)
}

func handoverKinds() []handoverKind {
	return []handoverKind{
		{"graceful", (*replicaSet).terminate},
		{"killed", (*replicaSet).kill},
		{"paused", (*replicaSet).pause},
		{"graceful, without a connection between replicas", (*replicaSet).terminateAlone},
		{"no connection to the API server", (*replicaSet).disconnect},
		{"responses of the API server are lost", (*replicaSet).loseResponses},
		{"the API server restarts", (*replicaSet).restartAPIServer},
		{"the Lease is deleted", (*replicaSet).deleteLease},
		{"the Lease names another holder", (*replicaSet).editLease},
	}
}

// terminate stops the leader as a rollout does.
func (r *replicaSet) terminate(leader *member) {
	require.NoError(r.t, leader.Signal(syscall.SIGTERM))
	time.Sleep(endpointLag)
	r.serve(r.except(leader)...)
	r.leader(r.except(leader)...)
	<-leader.Done()
	require.Zero(r.t, leader.Code(), leader.Tail())
	leader.start()
}

// terminateAlone stops a leader that cannot hand over what is in flight.
func (r *replicaSet) terminateAlone(leader *member) {
	for _, m := range r.members {
		m.peer.Set(faultproxy.Both(faultproxy.Direction{Behavior: faultproxy.Hold}))
	}
	r.terminate(leader)
}

func (r *replicaSet) kill(leader *member) {
	r.serve(r.except(leader)...)
	require.NoError(r.t, leader.Signal(syscall.SIGKILL))
	r.leader(r.except(leader)...)
	leader.start()
}

// pause suspends the leader until another one leads.
func (r *replicaSet) pause(leader *member) {
	r.serve(r.except(leader)...)
	require.NoError(r.t, leader.Signal(syscall.SIGSTOP))
	r.leader(r.except(leader)...)
	require.NoError(r.t, leader.Signal(syscall.SIGCONT))
	leader.follows()
}

// disconnect holds back everything between the leader and the API server.
func (r *replicaSet) disconnect(leader *member) {
	r.serve(r.except(leader)...)
	leader.api.Set(faultproxy.Both(faultproxy.Direction{Behavior: faultproxy.Hold}))
	r.leader(r.except(leader)...)
	leader.follows()
}

// loseResponses resets connections of the leader to the API server when it
// answers: it stores renewals that the leader takes for failed.
func (r *replicaSet) loseResponses(leader *member) {
	r.serve(r.except(leader)...)
	leader.api.Set(faultproxy.Faults{ToClient: faultproxy.Direction{Behavior: faultproxy.Sever}})
	leader.follows()
	leader.api.Set(faultproxy.Faults{Reject: true}) // otherwise it renews the Lease for ever
	leader.api.Reset()
	r.leader(r.except(leader)...)
}

func (r *replicaSet) restartAPIServer(*member) {
	require.NoError(r.t, r.c.RestartAPIServer(r.t.Context()))
}

func (r *replicaSet) deleteLease(leader *member) {
	require.NoError(r.t, r.leases().Delete(r.t.Context(), server.Name, metav1.DeleteOptions{}))
	leader.follows()
	r.leader()
}

func (r *replicaSet) editLease(leader *member) {
	r.updateLease(func(lease *coordinationv1.Lease) {
		other := "other-holder"
		lease.Spec.HolderIdentity = &other
	})
	leader.follows()
	r.leader()
}

func (r *replicaSet) leases() typedcoordinationv1.LeaseInterface {
	r.t.Helper()
	clients, err := kubernetes.NewForConfig(r.c.Config)
	require.NoError(r.t, err)
	return clients.CoordinationV1().Leases(server.Namespace)
}

// updateLease edits the Lease, which the leader renews at the same time.
func (r *replicaSet) updateLease(edit func(*coordinationv1.Lease)) {
	r.t.Helper()
	soon(r.t, func() bool {
		lease, err := r.leases().Get(r.t.Context(), server.Name, metav1.GetOptions{})
		require.NoError(r.t, err)
		edit(lease)
		_, err = r.leases().Update(r.t.Context(), lease, metav1.UpdateOptions{})
		return err == nil
	}, "the Lease cannot be written")
}
