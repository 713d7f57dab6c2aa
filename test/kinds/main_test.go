//go:build e2e

// Package kinds applies policies of every kind that has a built-in profile to a
// real API server with the real server, and checks the results. The cases are in
// testdata, a file for each system. All share one control plane; each has its own
// gateway, route and service.
package kinds

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/inprocess"
	"overrule.dev/overrule/test/server"
)

var (
	// plane is the control plane of all tests here, and overruleServer the
	// server.
	plane          *inprocess.Cluster
	overruleServer *server.Server
	// admin is a client with all rights, for calls that do not need kubectl.
	admin client.Client
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	stop, err := boot(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	code := m.Run()
	if code != 0 || strings.Contains(overruleServer.Log(), "panic") {
		fmt.Fprintf(os.Stderr, "the server's log:\n%s\n", overruleServer.Tail())
		return 1
	}
	return code
}

// boot starts the control plane with the CRDs of all kinds, and the server.
func boot(ctx context.Context) (stop func(), err error) {
	if plane, err = inprocess.Boot(ctx); err != nil {
		return nil, err
	}
	stop = func() { _ = plane.Stop() }
	for _, prepare := range []func(context.Context, *env.Env) error{install, grant} {
		if err := prepare(ctx, plane.Env); err != nil {
			stop()
			return nil, err
		}
	}
	if admin, err = client.New(plane.Config, client.Options{}); err != nil {
		stop()
		return nil, err
	}
	if overruleServer, err = server.Boot(ctx, plane.Env, server.Options{}); err != nil {
		stop()
		return nil, err
	}
	return func() { _, _ = overruleServer.Stop(), plane.Stop() }, nil
}
