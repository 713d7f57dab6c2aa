//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/faultproxy"
	"overrule.dev/overrule/test/server"
)

const localhost = "127.0.0.1"

// replicaSet is a set of replicas with a proxy between each and the API server,
// and between each and the other replicas.
type replicaSet struct {
	t        *testing.T
	c        *cluster
	site     *server.Site
	balancer *balancer
	members  []*member
	started  []*server.Server // all processes
	host     string           // of the replicas' connections to each other
}

// member is one replica. Its process may be replaced.
type member struct {
	*server.Server

	// client writes with calls that go to this replica.
	client *pairClient
	// api is between the replica and the API server, peer between other replicas and
	// this one.
	api, peer *faultproxy.Proxy

	set                  *replicaSet
	kubeconfig, peerBind string
	identity             string // in the Lease, once it has led
}

// newReplicaSet starts replicas, and waits until one of them leads and the API
// server calls them. They connect to each other at a host.
func newReplicaSet(t *testing.T, c *cluster, n int, host string) *replicaSet {
	t.Helper()
	site, err := server.Install(t.Context(), c.Env)
	require.NoError(t, err)
	r := &replicaSet{t: t, c: c, site: site, balancer: newBalancer(t, c), host: host}
	for i := range n {
		m := r.newMember(fmt.Sprintf("replica-%d", i))
		r.members = append(r.members, m)
		m.start()
		if i == 0 {
			r.balancer.setBackends(m.Server)
			c.awaitCalled(t)
		}
	}
	r.serve(r.members...)
	t.Cleanup(func() { r.serve() })
	r.leader()
	return r
}

func (r *replicaSet) newMember(name string) *member {
	r.t.Helper()
	port, err := env.FreePort(r.t.Context())
	require.NoError(r.t, err)
	m := &member{set: r, client: r.c.newPairClient(r.t, name, true), peerBind: net.JoinHostPort(r.host, strconv.Itoa(int(port)))}
	api, err := url.Parse(r.c.Config.Host)
	require.NoError(r.t, err)
	m.api, m.peer = newFaultProxy(r.t, localhost, api.Host), newFaultProxy(r.t, r.host, m.peerBind)
	content, err := os.ReadFile(r.site.Account.Kubeconfig)
	require.NoError(r.t, err)
	require.Contains(r.t, string(content), api.Host)
	m.kubeconfig = filepath.Join(r.t.TempDir(), "kubeconfig")
	require.NoError(r.t, os.WriteFile(m.kubeconfig, []byte(strings.ReplaceAll(string(content), api.Host, m.api.Address())), 0o600))
	return m
}

func newFaultProxy(t *testing.T, host, target string) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.Start(t.Context(), net.JoinHostPort(host, "0"), target)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// start starts a process of the replica, and waits until it is ready.
func (m *member) start() {
	t := m.set.t
	t.Helper()
	args := []string{
		"--log-level=debug", "--drain-period=2s", m.set.balancer.flag(), "--kubeconfig=" + m.kubeconfig,
		"--peer-bind-address=" + m.peerBind, "--peer-address=" + m.peer.Address(),
	}
	s, err := m.set.site.Boot(t.Context(), server.Options{Unprobed: true, Args: args})
	require.NoError(t, err)
	m.Server, m.identity = s, ""
	m.set.started = append(m.set.started, s)
	t.Cleanup(func() {
		_ = s.Signal(syscall.SIGCONT)
		assert.NoError(t, s.Stop())
		requireNoPanic(t, s)
		if t.Failed() {
			t.Logf("the log of %s:\n%s", m.client.user, s.Tail())
		}
	})
}

// serve sets the replicas that calls are sent to, as a Service does: those of the
// client of another replica are sent to the first of these. It waits until no call
// is in flight to another replica.
func (r *replicaSet) serve(members ...*member) {
	var servers []*server.Server
	for _, m := range members {
		servers = append(servers, m.Server)
		r.balancer.route(m.client.user, m.Server)
	}
	r.balancer.setBackends(servers...)
	for _, m := range r.members {
		if !slices.Contains(members, m) && len(members) > 0 {
			r.balancer.route(m.client.user, members[0].Server)
			soon(r.t, func() bool { return r.balancer.inFlight(m.Server) == 0 }, "calls are in flight to "+m.client.user)
		}
	}
}

// except returns the other members.
func (r *replicaSet) except(m *member) []*member {
	var out []*member
	for _, other := range r.members {
		if other != m {
			out = append(out, other)
		}
	}
	return out
}

func (r *replicaSet) clients() []*pairClient {
	var out []*pairClient
	for _, m := range r.members {
		out = append(out, m.client)
	}
	return out
}

// leader waits until one of the members leads, of all members by default, and
// returns it.
func (r *replicaSet) leader(of ...*member) *member {
	r.t.Helper()
	if len(of) == 0 {
		of = r.members
	}
	var found *member
	soon(r.t, func() bool {
		for _, m := range of {
			if leads, ok := m.leads(); ok && leads {
				found = m
				return true
			}
		}
		return false
	}, "no replica leads")
	found.identity = r.c.leader(r.t)
	return found
}

// follows waits until a replica does not lead.
func (m *member) follows() {
	m.set.t.Helper()
	soon(m.set.t, func() bool {
		leads, ok := m.leads()
		return ok && !leads
	}, m.client.user+" leads")
}

// leads reports whether a replica leads, and whether it answers.
func (m *member) leads() (leads, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.Metrics+"/metrics", nil)
	if err != nil {
		return false, false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, false
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return strings.Contains(string(text), "\noverrule_leader 1\n"), err == nil
}

// settle repairs all faults, and waits until all replicas serve and one leads.
func (r *replicaSet) settle() *member {
	r.t.Helper()
	for _, m := range r.members {
		m.api.Set(faultproxy.Faults{})
		m.peer.Set(faultproxy.Faults{})
	}
	for _, m := range r.members {
		soon(r.t, func() bool { return ready(m.Health) }, m.client.user+" is not ready")
	}
	r.serve(r.members...)
	return r.leader()
}

// ready reports whether a server is ready.
func ready(health string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// linesOf returns the lines of all logs with one of the texts.
func (r *replicaSet) linesOf(texts ...string) string {
	var out strings.Builder
	for i, s := range r.started {
		for line := range strings.Lines(s.Log()) {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
				fmt.Fprintf(&out, "process %d: %s", i, line)
			}
		}
	}
	return out.String()
}
