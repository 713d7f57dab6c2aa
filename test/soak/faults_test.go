//go:build soak

package soak

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/test/server"
)

const (
	// calm is the time after a fault is repaired that belongs to its phase.
	calm = 4 * time.Second
	// asleep is the time for which a follower hangs: longer than the maximum
	// cache staleness. A leader hangs for nap: longer than the balancer takes to
	// notice, and shorter than its lease.
	asleep = cache.StaleAfter + 2*time.Second
	nap    = 8 * time.Second
	// away is the time without an API server, in addition to its stop and start.
	away = 2 * time.Second
)

// faults are injected one after another; each is repaired when it returns.
var faults = []func(*soakTest){
	(*soakTest).restartEach, (*soakTest).rotate, (*soakTest).restartAPIServer,
	(*soakTest).pauseFollower, (*soakTest).pauseLeader, (*soakTest).kill, (*soakTest).loseLease,
}

// restartEach restarts one server after another: nothing is lost.
func (s *soakTest) restartEach() {
	s.counters.begin("each server restarts")
	for _, slot := range s.replicas.members {
		before, _ := slot.now()
		s.replicas.signal(slot, syscall.SIGTERM)
		s.replicas.awaitSuccessor(slot, before)
		ends := slot.ended()
		require.Zero(s.t, ends[len(ends)-1].code, "exits with code 0 on SIGTERM: %s", ends[len(ends)-1].log)
	}
	s.settle()
}

// rotate deletes the authority: a new one signs certificates for all servers:
// nothing is lost.
func (s *soakTest) rotate() {
	s.counters.begin("the authority is replaced")
	before := s.issuers()
	got := s.plane.Kubectl("-n", server.Namespace, "delete", "secret/overrule-ca")
	require.Zero(s.t, got.Code, got.Stderr)
	soon(s.t, func() bool {
		for issuer := range s.issuers() {
			if before[issuer] {
				return false
			}
		}
		return true
	}, "the servers have certificates of the old authority")
	s.settle()
}

// issuers returns the authorities of the serving certificates.
func (s *soakTest) issuers() map[string]bool {
	out := map[string]bool{}
	for _, slot := range s.replicas.members {
		now, _ := slot.now()
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		conn, err := dialer.DialContext(s.t.Context(), "tcp", now.Webhook)
		require.NoError(s.t, err)
		out[string(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].AuthorityKeyId)] = true
		_ = conn.Close()
	}
	return out
}

// restartAPIServer stops the API server and starts it again: its writers wait,
// and nothing is lost once it answers.
func (s *soakTest) restartAPIServer() {
	p := s.counters.begin("the API server restarts")
	p.restarts = true
	s.replicas.balancer.frozen.Store(true)
	require.NoError(s.t, s.plane.StopAPIServer())
	time.Sleep(away)
	require.NoError(s.t, s.plane.StartAPIServer(s.t.Context()))
	s.replicas.balancer.frozen.Store(false)
	s.counters.begin("... and answers again")
	s.settle()
}

func (s *soakTest) pauseFollower() {
	s.pause("a server hangs", func(s *replica) bool { return !leads(s) }, asleep)
}

func (s *soakTest) pauseLeader() { s.pause("the leader hangs", leads, nap) }

// pause stops a server for a while. Each of its connections may lose one call:
// the one that had no response in time.
func (s *soakTest) pause(name string, who func(*replica) bool, paused time.Duration) {
	s.spread()
	slot := s.find(who)
	p := s.counters.begin(name)
	bound := s.connections(slot)
	s.replicas.signal(slot, syscall.SIGSTOP)
	time.Sleep(paused)
	p.bound = bound()
	s.replicas.signal(slot, syscall.SIGCONT)
	s.settle()
}

// kill kills a server. Each of its connections may lose one call.
func (s *soakTest) kill() {
	s.spread()
	slot := s.find(func(s *replica) bool { return !leads(s) })
	p := s.counters.begin("a server is killed")
	before, _ := slot.now()
	bound := s.connections(slot)
	s.replicas.signal(slot, syscall.SIGKILL)
	s.replicas.awaitSuccessor(slot, before)
	p.bound = bound()
	s.settle()
}

// spread makes the API server call all servers: it opens a connection only if its
// existing ones are busy, so a server may have none.
func (s *soakTest) spread() {
	for _, slot := range s.replicas.members {
		_, at := slot.now()
		soon(s.t, func() bool {
			var burst sync.WaitGroup
			for range 20 {
				burst.Go(func() {
					got, text := outcomeOf(s.try.send(s.t.Context(), s.client))
					s.counters.record(s.counters.now(), string(s.try.want), got, text, s.try.what)
				})
			}
			burst.Wait()
			return at.open.Load() > 0
		}, "a server gets no connection")
	}
}

// connections returns a function that counts the connections of a server: those
// open now, and those routed to it until the call.
func (s *soakTest) connections(slot *replica) func() int64 {
	_, at := slot.now()
	open, led := at.open.Load(), at.routed.Load()
	return func() int64 { return open + at.routed.Load() - led }
}

// loseLease gives the leader's lease to a holder that does nothing with it: the
// leader follows, one leads once the lease has run out, and nothing is lost.
func (s *soakTest) loseLease() {
	slot := s.find(leads)
	s.counters.begin("the leader loses its lease")
	client, err := kubernetes.NewForConfig(s.plane.Config)
	require.NoError(s.t, err)
	leases := client.CoordinationV1().Leases(server.Namespace)
	soon(s.t, func() bool {
		lease, err := leases.Get(s.t.Context(), server.Name, metav1.GetOptions{})
		require.NoError(s.t, err)
		otherHolder, now := "other-holder", metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &otherHolder, &now
		_, err = leases.Update(s.t.Context(), lease, metav1.UpdateOptions{})
		return err == nil // otherwise the leader wrote it at the same time
	}, "the lease cannot be written")
	soon(s.t, func() bool { return !leads(slot) }, "it leads without the lease")
	s.settle()
}

// settle waits until all servers have connections and one leads, and some time
// more.
func (s *soakTest) settle() {
	s.replicas.awaitReady()
	s.find(leads)
	time.Sleep(calm)
}

// find waits for a server that meets a condition, and returns it.
func (s *soakTest) find(is func(*replica) bool) *replica {
	var found *replica
	soon(s.t, func() bool {
		for _, slot := range s.replicas.members {
			if is(slot) {
				found = slot
				return true
			}
		}
		return false
	}, "no server meets the condition")
	return found
}

// leads reports whether the server is the leader.
func leads(s *replica) bool {
	now, _ := s.now()
	ctx, cancel := context.WithTimeout(context.Background(), pollLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+now.Metrics+"/metrics", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return err == nil && bytes.Contains(text, []byte("\noverrule_leader 1\n"))
}
