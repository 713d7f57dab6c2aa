// Package server runs the overrule binary beside a test control plane, as the
// service account that deploy/base gives it and with no more rights.
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
	// Namespace is the server's own.
	Namespace = "overrule-system"
	// Name is that of its Service, its account and its webhook configurations.
	Name = "overrule"
)

// ErrNoBinary says that the server was not built.
var ErrNoBinary = errors.New("the server is not built")

// Options change how the server runs. The zero value is the way of the demo.
type Options struct {
	// Args are further flags; a flag that is given here replaces the usual one.
	Args []string
	// Unprobed returns as soon as the server is ready, without waiting until the
	// API server calls it: for servers that do not register themselves, and
	// control planes without AuthPolicy.
	Unprobed bool
	// Every is the pause between two looks at whether it is ready: 20 ms, unless
	// ReadyAfter has to be more exact.
	Every time.Duration
	// Started, if set, is called as soon as the process runs, before it is ready.
	Started func(*Server)
}

// Server is a running server.
type Server struct {
	*process.Process

	// Webhook, Metrics and Health are the host:port of its three listeners.
	Webhook, Metrics, Health string
	// ReadyAfter is the time from the start of the process until it said that it
	// is ready.
	ReadyAfter time.Duration
}

// Site is a control plane that has all that a server needs: its CRDs,
// namespace, account and rights.
type Site struct {
	// Account is the user that the server is to the API server.
	Account *env.User

	env    *env.Env
	binary string
}

// Start runs a server for a test, which fails with the server's log if that does
// not work, and stops it when the test ends.
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

// Boot installs what the server needs, runs it and waits until it judges. Each
// call takes ports of its own: a server that follows another is found there.
func Boot(ctx context.Context, e *env.Env, o Options) (*Server, error) {
	site, err := Install(ctx, e)
	if err != nil {
		return nil, err
	}
	return site.Boot(ctx, o)
}

// Install installs what the server needs, for as many servers as are booted
// there. It fails with ErrNoBinary if there is none to run.
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

// Boot runs a server and waits until it judges.
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
	var ports [3]int32
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
	s := &Server{Webhook: loopback(ports[0]), Metrics: loopback(ports[1]), Health: loopback(ports[2])}
	usual := []string{
		"--kubeconfig=" + site.Account.Kubeconfig,
		"--namespace=" + Namespace,
		"--drain-period=0s", // nobody has to be sent elsewhere
		"--service=" + Name,
		"--service-port=" + strconv.Itoa(int(ports[0])),
		"--webhook-bind-address=" + s.Webhook,
		"--metrics-bind-address=" + s.Metrics,
		"--health-bind-address=" + s.Health,
	}
	var err error
	s.Process, err = process.Start(process.Spec{Path: site.binary, Args: append(usual, args...), Env: environ()})
	return s, err
}

// environ is the environment of this process, but for what hack/test has Go
// collect garbage by: the server does that as in a cluster.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GOGC=") })
}

func loopback(port int32) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))) }
