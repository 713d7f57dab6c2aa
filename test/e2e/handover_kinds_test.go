//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	// loses: writes can be lost. A leader that cannot read from the API server denies
	// a write that it has to read more objects for, and not with code 429.
	loses bool
}

func handoverKinds() []handoverKind {
	return []handoverKind{
		{name: "graceful", force: (*replicaSet).terminate},
		{name: "killed", force: (*replicaSet).kill},
		{name: "paused", force: (*replicaSet).pause},
		{name: "graceful, without a connection between replicas", force: (*replicaSet).terminateAlone},
		{name: "no connection to the API server", force: (*replicaSet).disconnect, loses: true},
		{name: "responses of the API server are lost", force: (*replicaSet).loseResponses, loses: true},
		{name: "the API server restarts", force: (*replicaSet).restartAPIServer, loses: true},
		{name: "the Lease is deleted", force: (*replicaSet).deleteLease},
		{name: "the Lease names another holder", force: (*replicaSet).editLease},
		{name: "the Lease names another replica", force: (*replicaSet).nameOtherReplica},
		{name: "the Lease is created again for another replica", force: (*replicaSet).createLease},
		{name: "the Lease cannot be read or written", force: (*replicaSet).forbidLease},
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
	leader.api.Set(faultproxy.Faults{})
	leader.follows()
}

// loseResponses resets connections of the leader to the API server when it
// answers: it has stored a renewal that the leader takes for failed.
func (r *replicaSet) loseResponses(leader *member) {
	r.serve(r.except(leader)...)
	leader.api.Set(faultproxy.Faults{ToClient: faultproxy.Direction{Behavior: faultproxy.Sever}})
	r.leader(r.except(leader)...)
	leader.api.Set(faultproxy.Faults{})
	leader.follows()
}

func (r *replicaSet) restartAPIServer(*member) {
	require.NoError(r.t, r.c.RestartAPIServer(r.t.Context()))
}

func (r *replicaSet) deleteLease(leader *member) {
	require.NoError(r.t, r.leases().Delete(r.t.Context(), server.Name, metav1.DeleteOptions{}))
	leader.follows()
	r.leader()
}

func (r *replicaSet) editLease(leader *member) { r.nameHolder(leader, "other-holder") }

// nameOtherReplica makes the Lease name a replica that did not acquire it.
func (r *replicaSet) nameOtherReplica(leader *member) { r.nameHolder(leader, r.otherIdentity(leader)) }

func (r *replicaSet) nameHolder(leader *member, holder string) {
	r.updateLease(func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = &holder })
	leader.follows()
	r.leader()
}

// createLease replaces the Lease by one that names a replica that did not acquire
// it.
func (r *replicaSet) createLease(leader *member) {
	lease, err := r.leases().Get(r.t.Context(), server.Name, metav1.GetOptions{})
	require.NoError(r.t, err)
	other := r.otherIdentity(leader)
	again := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease.Name, Annotations: lease.Annotations}, Spec: lease.Spec}
	again.Spec.HolderIdentity = &other
	soon(r.t, func() bool {
		_ = r.leases().Delete(r.t.Context(), server.Name, metav1.DeleteOptions{})
		_, err := r.leases().Create(r.t.Context(), again, metav1.CreateOptions{})
		return err == nil
	}, "a replica creates the Lease")
	leader.follows()
	r.leader()
}

// otherIdentity returns the identity with which another running replica led
// before, or one of no replica.
func (r *replicaSet) otherIdentity(leader *member) string {
	for _, m := range r.except(leader) {
		if m.identity != "" {
			return m.identity
		}
	}
	return "other-holder"
}

// forbidLease takes the rights to the Lease away until no replica leads.
func (r *replicaSet) forbidLease(leader *member) {
	clients, err := kubernetes.NewForConfig(r.c.Config)
	require.NoError(r.t, err)
	roles := clients.RbacV1().Roles(server.Namespace)
	update := func(rules []rbacv1.PolicyRule) (before []rbacv1.PolicyRule) {
		role, err := roles.Get(r.t.Context(), server.Name, metav1.GetOptions{})
		require.NoError(r.t, err)
		before = role.Rules
		role.Rules = rules
		if rules == nil {
			role.Rules = slices.DeleteFunc(slices.Clone(before), func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "leases") })
		}
		_, err = roles.Update(r.t.Context(), role, metav1.UpdateOptions{})
		require.NoError(r.t, err)
		return before
	}
	before := update(nil)
	leader.follows()
	update(before)
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

// termOf returns the term of a Lease, as replicas send it to each other.
func termOf(lease *coordinationv1.Lease) string {
	return fmt.Sprintf("%s/%d/%s", lease.UID, *lease.Spec.LeaseTransitions, *lease.Spec.HolderIdentity)
}
