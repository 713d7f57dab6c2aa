//go:build e2e

package replicas

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/faultproxy"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
)

// The lease is long enough for a machine that stands still for seconds, and runs out
// soon enough to wait for it.
const leaseDuration = 15 * time.Second

const localhost = "127.0.0.1"

// plane is the control plane of all tests, which run one after another.
var plane = sync.OnceValues(func() (*env.Env, error) { return env.Boot(context.Background()) })

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // envtest logs each CRD that it installs
	code := m.Run()
	if e, err := plane(); err == nil {
		if err := e.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func startPlane(t *testing.T) *env.Env {
	t.Helper()
	e, err := plane()
	require.NoError(t, err)
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	require.NoError(t, e.InstallCRDs(filepath.Join(root, "deploy", "crds")))
	return e
}

// replicaSet is a set of replicas with a proxy between the API server and all of them,
// between each and the API server, and between each and the other replicas.
type replicaSet struct {
	t       *testing.T
	plane   *env.Env
	site    *server.Site
	service *faultproxy.Proxy
	members []*member
}

// member is one replica. Its process may be replaced.
type member struct {
	*server.Server

	set *replicaSet
	// api is between the replica and the API server, peer between other replicas and
	// this one.
	api, peer            *faultproxy.Proxy
	kubeconfig, peerBind string
}

// newReplicaSet starts replicas, and waits until one of them leads and the API server
// calls them. Every second one has an IPv6 address.
func newReplicaSet(t *testing.T, n int) *replicaSet {
	t.Helper()
	e := startPlane(t)
	site, err := server.Install(t.Context(), e)
	require.NoError(t, err)
	r := &replicaSet{t: t, plane: e, site: site, service: newProxy(t, localhost)}
	t.Cleanup(r.unregister)
	for i := range n {
		m := r.newMember([]string{localhost, "::1"}[i%2])
		r.members = append(r.members, m)
		m.start(t)
		if i == 0 {
			r.serve(m)
			require.NoError(t, m.WaitUntilCalled(t.Context(), e))
		}
	}
	r.serve(r.members...)
	r.leader()
	return r
}

// unregister removes the webhook configurations of servers that have stopped.
func (r *replicaSet) unregister() {
	got := r.plane.Kubectl("delete", "--ignore-not-found", "validatingwebhookconfiguration/"+server.Name, "mutatingwebhookconfiguration/"+server.Name)
	assert.Zero(r.t, got.Code, got.Stderr)
}

func (r *replicaSet) newMember(host string) *member {
	r.t.Helper()
	port, err := env.FreePort(r.t.Context())
	require.NoError(r.t, err)
	m := &member{set: r, peerBind: net.JoinHostPort(host, strconv.Itoa(int(port)))}
	api, err := url.Parse(r.plane.Config.Host)
	require.NoError(r.t, err)
	m.api, m.peer = newProxy(r.t, localhost, api.Host), newProxy(r.t, host, m.peerBind)
	content, err := os.ReadFile(r.site.Account.Kubeconfig)
	require.NoError(r.t, err)
	require.Contains(r.t, string(content), api.Host)
	m.kubeconfig = filepath.Join(r.t.TempDir(), "kubeconfig")
	require.NoError(r.t, os.WriteFile(m.kubeconfig, []byte(strings.ReplaceAll(string(content), api.Host, m.api.Address())), 0o600))
	return m
}

func newProxy(t *testing.T, host string, targets ...string) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.Start(t.Context(), net.JoinHostPort(host, "0"), targets...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// start starts a process of the replica, and waits until it is ready. The test that made
// the set stops it.
func (m *member) start(t *testing.T) {
	t.Helper()
	s, err := m.set.site.Boot(t.Context(), server.Options{Unprobed: true, Args: append(m.set.serviceFlags(),
		"--webhook-timeout=5s", "--lease-duration="+leaseDuration.String(), "--kubeconfig="+m.kubeconfig,
		"--peer-bind-address="+m.peerBind, "--peer-address="+m.peer.Address(),
	)})
	require.NoError(t, err)
	m.Server = s
	m.set.t.Cleanup(func() {
		_ = s.Signal(syscall.SIGCONT)
		assert.NoError(m.set.t, s.Stop())
		assert.NotContains(m.set.t, strings.ToLower(s.Log()), "panic")
		if m.set.t.Failed() {
			m.set.t.Logf("the log of the replica at %s:\n%s", m.Peers, s.Tail())
		}
	})
}

func (r *replicaSet) serviceFlags() []string {
	return []string{"--log-level=debug", "--drain-period=2s", fmt.Sprintf("--service-port=%d", netip.MustParseAddrPort(r.service.Address()).Port())}
}

// serve sets the replicas that get new connections, as a Service does.
func (r *replicaSet) serve(members ...*member) {
	var addresses []string
	for _, m := range members {
		addresses = append(addresses, m.Webhook)
	}
	r.service.SetTargets(addresses...)
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

// leader waits until one of the members leads, of all members by default, and returns
// it.
func (r *replicaSet) leader(of ...*member) *member {
	r.t.Helper()
	if len(of) == 0 {
		of = r.members
	}
	var found *member
	env.Soon(r.t, func() bool {
		for _, m := range of {
			if value, ok := m.metric("overrule_leader"); ok && value == 1 {
				found = m
			}
		}
		return found != nil
	}, "no replica leads")
	return found
}

// awaitFollower waits until a replica does not lead.
func (m *member) awaitFollower() {
	m.set.t.Helper()
	env.Soon(m.set.t, func() bool {
		value, ok := m.metric("overrule_leader")
		return ok && value == 0
	}, "it leads")
}

// metric returns server.Metric of a replica, which may not answer.
func (m *member) metric(name string, labels ...string) (sum float64, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return m.Metric(ctx, name, labels...)
}

func (m *member) ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	ok, _ := process.OK("http://" + m.Health + "/readyz")(ctx)
	return ok
}

// settle repairs all faults, and waits until all replicas serve and one leads.
func (r *replicaSet) settle() *member {
	r.t.Helper()
	for _, m := range r.members {
		m.api.Set(faultproxy.Faults{})
		m.peer.Set(faultproxy.Faults{})
		require.NoError(r.t, m.Signal(syscall.SIGCONT))
	}
	for _, m := range r.members {
		env.Soon(r.t, m.ready, "a replica is not ready")
	}
	r.serve(r.members...)
	return r.leader()
}

// connections returns a function that counts the connections of the API server to a
// replica: those open now, and those routed to it until the call.
func (m *member) connections() func() int {
	address := m.Webhook
	open, before := m.set.service.Connections(address)
	return func() int {
		_, total := m.set.service.Connections(address)
		return open + total - before
	}
}
