//go:build e2e

package e2e

import (
	"testing"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/inprocess"
)

// cluster is the control plane of a test. Its kubectl runs in-process.
type cluster struct {
	*env.Env
	runner
}

// runner runs kubectl: in-process, or as the program.
type runner interface {
	Kubectl(args ...string) env.Result
	KubectlWith(stdin string, args ...string) env.Result
	Apply(manifest string, args ...string) env.Result
}

// program returns the cluster with the kubectl program, for tests of its output.
func (c *cluster) program() *cluster { return &cluster{c.Env, c.User} }

// shared returns a control plane of the pool, with the CRDs and controllers, and runs
// the test in parallel with others.
func shared(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	c := inprocess.Start(t, env.WithControllers())
	return &cluster{c.Env, c.Client}
}

// alone is like shared with other options.
func alone(t *testing.T, opts ...env.Option) *cluster {
	t.Helper()
	t.Parallel()
	c := inprocess.Start(t, opts...)
	return &cluster{c.Env, c.Client}
}
