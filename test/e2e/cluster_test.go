//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

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

// pool is a set of control planes that tests share, each used by one test at a
// time. There are as many as tests that run in parallel.
type pool struct {
	mu   sync.Mutex
	free []*cluster
	all  []*cluster
}

var planes pool

// shared returns a control plane that has the CRDs and controllers, and no
// webhook configurations, and runs the test in parallel with others. Namespaces
// of earlier tests may have objects.
func shared(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	return exclusive(t)
}

// exclusive is like shared for a test that must not run in parallel with others:
// it needs both cores, or most of the open files.
func exclusive(t *testing.T) *cluster {
	t.Helper()
	c, used := planes.take(t)
	t.Cleanup(func() {
		if !t.Failed() { // a failed test may have left anything
			planes.put(c)
		}
	})
	if used {
		c.removeWebhooks(t)
	}
	return c
}

// alone returns a control plane for this test only, which the test may break, and
// runs the test in parallel with others.
func alone(t *testing.T, opts ...env.Option) *cluster {
	t.Helper()
	t.Parallel()
	c := inprocess.Start(t, opts...)
	return &cluster{c.Env, c.Client}
}

// take returns a control plane, and whether a test used it before.
func (p *pool) take(t *testing.T) (c *cluster, used bool) {
	t.Helper()
	if c := p.pop(); c != nil {
		return c, true
	}
	booted, err := inprocess.Boot(context.Background(), env.WithControllers()) // outlives the test
	require.NoError(t, err)
	c = &cluster{booted.Env, booted.Client}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, c)
	return c, false
}

func (p *pool) pop() *cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return nil
	}
	last := len(p.free) - 1
	c := p.free[last]
	p.free = slices.Delete(p.free, last, last+1)
	return c
}

func (p *pool) put(c *cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, c)
}

// stop stops all control planes, and returns the exit code of the tests.
func (p *pool) stop(code int) int {
	for _, c := range p.all {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = 1
		}
	}
	return code
}
