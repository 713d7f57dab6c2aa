package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
)

const (
	// patience is how long the server may take to be ready, and the API server to
	// call it: long enough for a busy machine.
	patience = 2 * time.Minute
	pause    = 100 * time.Millisecond
)

// ErrNotReady says that the server ended, or was not ready in time.
var ErrNotReady = errors.New("the server does not judge")

// waitUntilReady books how long the server took.
func (s *Server) waitUntilReady(ctx context.Context, every time.Duration) error {
	wait := process.Wait{Limit: patience, Pause: cmp.Or(every, pause), Problem: "it does not say that it is ready"}
	err := s.until(ctx, wait, process.OK("http://"+s.Health+"/readyz?verbose"))
	s.ReadyAfter = s.Age()
	return err
}

// Probe is a policy without a target, whose writer is warned about that.
const Probe = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: probe, namespace: default}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: nothing}
  rules: {authentication: {a: 1}}
`

// WaitUntilCalled waits until the webhook configurations that lead to the server
// are in force: some moments after they are there, as the API server learns of
// them by a watch. What the validating webhook says is on stderr, what the
// mutating one adds is in the object.
func (s *Server) WaitUntilCalled(ctx context.Context, e *env.Env) error {
	wait := process.Wait{Limit: patience, Pause: pause, Problem: "the API server does not call it"}
	return s.until(ctx, wait, func(context.Context) (bool, string) {
		got := e.KubectlWith(Probe, "create", "--dry-run=server", "-o", "json", "-f", "-")
		called := strings.Contains(got.Stderr, "Warning: ") && strings.Contains(got.Stdout, `"overrule.dev/`)
		return called, got.Stdout + got.Stderr
	})
}

func (s *Server) until(ctx context.Context, w process.Wait, ask process.Question) error {
	if err := s.Until(ctx, w, ask); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil
}
