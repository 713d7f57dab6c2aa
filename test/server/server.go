// Package server runs the overrule binary with a test control plane, as the
// service account of deploy/base and with only its rights.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
)

const (
	// Namespace is the server's namespace.
	Namespace = "overrule-system"
	// Name is the name of its Service, its account and its webhook
	// configurations.
	Name = "overrule"
)

// ErrNoBinary means that the server was not built.
var ErrNoBinary = errors.New("the server is not built")

// Options configure the server. The zero value is that of the demo.
type Options struct {
	// Args are additional flags; they replace the default ones.
	Args []string
	// Unprobed returns as soon as the server is ready, without waiting until the
	// API server calls it: for servers that do not register themselves, and
	// control planes without AuthPolicy.
	Unprobed bool
	// Every is the polling interval of readiness. Default: 20 ms.
	Every time.Duration
	// Started, if set, is called as soon as the process runs, before it is ready.
	Started func(*Server)
}

// Server is a running server.
type Server struct {
	*process.Process

	// Webhook, Metrics, Health and Peers are host:port of its listeners; the last one
	// is for other replicas.
	Webhook, Metrics, Health, Peers string
	// ReadyAfter is the time from the start of the process until it was ready.
	ReadyAfter time.Duration

	ignores bool // with --failure-policy=Ignore
}

// Site is a control plane with everything that a server needs: CRDs, namespace,
// account and rights.
type Site struct {
	// Account is the server's user.
	Account *env.User

	env    *env.Env
	binary string
}

// Start runs a server for a test, and stops it when the test ends. If it fails,
// so does the test, with the server's log.
func Start(tb testing.TB, e *env.Env, o Options) *Server {
	tb.Helper()
	s, err := Boot(tb.Context(), e, o)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("stop the server: %v", err)
		}
		if tb.Failed() {
			tb.Logf("the server's log:\n%s", s.Tail())
		}
	})
	return s
}

// Boot installs what the server needs, runs it and waits until it evaluates
// writes. Each call uses new ports; the Service points to the latest server.
func Boot(ctx context.Context, e *env.Env, o Options) (*Server, error) {
	site, err := Install(ctx, e)
	if err != nil {
		return nil, err
	}
	return site.Boot(ctx, o)
}

// Install installs what servers need. It fails with ErrNoBinary if there is no
// binary.
func Install(ctx context.Context, e *env.Env) (*Site, error) {
	root, err := env.Repository(ctx)
	if err != nil {
		return nil, err
	}
	binary, err := built(root)
	if err != nil {
		return nil, err
	}
	account, err := install(ctx, e, root)
	if err != nil {
		return nil, err
	}
	return &Site{Account: account, env: e, binary: binary}, nil
}

// Boot runs a server and waits until it evaluates writes.
func (site *Site) Boot(ctx context.Context, o Options) (*Server, error) {
	s, err := site.run(ctx, o.Args)
	if err != nil {
		return nil, err
	}
	if o.Started != nil {
		o.Started(s)
	}
	if err := s.waitUntilReady(ctx, o.Every); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if o.Unprobed {
		return s, nil
	}
	if err := s.WaitUntilCalled(ctx, site.env); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func built(root string) (string, error) {
	binary := filepath.Join(root, "bin", "overrule")
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("%w: %s is not there: run \"make build\"", ErrNoBinary, binary)
	}
	return binary, nil
}

func (site *Site) run(ctx context.Context, args []string) (*Server, error) {
	var ports [4]int32
	for i := range ports {
		port, err := env.FreePort(ctx)
		if err != nil {
			return nil, err
		}
		ports[i] = port
	}
	if err := site.env.RouteService(ctx, Namespace, Name, ports[0]); err != nil {
		return nil, err
	}
	s := &Server{Webhook: loopback(ports[0]), Metrics: loopback(ports[1]), Health: loopback(ports[2]), Peers: loopback(ports[3]), ignores: slices.Contains(args, "--failure-policy=Ignore")}
	usual := []string{
		"--kubeconfig=" + site.Account.Kubeconfig,
		"--namespace=" + Namespace,
		"--drain-period=0s", // no clients to drain
		"--service=" + Name,
		"--service-port=" + strconv.Itoa(int(ports[0])),
		"--webhook-bind-address=" + s.Webhook,
		"--metrics-bind-address=" + s.Metrics,
		"--health-bind-address=" + s.Health,
		// A busy machine is no fault: tests of these times set their own.
		"--webhook-timeout=10s",
	}
	if !slices.Contains(args, "--coordination=none") {
		usual = append(usual, "--peer-bind-address="+s.Peers, "--lease-duration=60s")
	}
	var err error
	s.Process, err = process.Start(process.Spec{Path: site.binary, Args: append(usual, args...), Env: environ()})
	return s, err
}

// environ is the environment of this process without GOGC of hack/test: the
// server uses the setting of a cluster.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GOGC=") })
}

func loopback(port int32) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))) }
