package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"overrule.dev/overrule/test/env"
)

const (
	// patience is how long the server may take to be ready, and the API server to
	// call it: long enough for a busy machine, since nothing is measured here.
	patience = 2 * time.Minute
	pause    = 100 * time.Millisecond
)

// ErrNotReady says that the server ended, or was not ready in time.
var ErrNotReady = errors.New("the server does not judge")

func (s *Server) waitUntilReady(ctx context.Context) error {
	return s.poll(ctx, patience, "it does not say that it is ready", func(ctx context.Context) (bool, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Health+"/readyz?verbose", nil)
		if err != nil {
			return false, err.Error()
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return false, err.Error()
		}
		return response.StatusCode == http.StatusOK, string(body)
	})
}

// probe is a policy without a target, whose writer is warned about that.
const probe = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: probe, namespace: default}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: nothing}
  rules: {authentication: {a: 1}}
`

// waitUntilCalled waits until the webhook configurations that the server wrote
// are in force: some moments after they are there, as the API server learns of
// them by a watch. What the validating webhook says is on stderr, what the
// mutating one adds is in the object.
func (s *Server) waitUntilCalled(ctx context.Context, e *env.Env) error {
	return s.poll(ctx, patience, "the API server does not call it", func(context.Context) (bool, string) {
		got := e.KubectlWith(probe, "create", "--dry-run=server", "-o", "json", "-f", "-")
		called := strings.Contains(got.Stderr, "Warning: ") && strings.Contains(got.Stdout, `"overrule.dev/`)
		return called, got.Stdout + got.Stderr
	})
}

// poll asks until it is told yes; its error has the last answer and the log.
func (s *Server) poll(ctx context.Context, limit time.Duration, problem string, ask func(context.Context) (bool, string)) error {
	deadline, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := ""
	for {
		done, answer := ask(deadline)
		if done {
			return nil
		}
		if last == "" || deadline.Err() == nil {
			last = answer // the last one is often just that the deadline is over
		}
		select {
		case <-time.After(pause):
		case <-s.Done():
			return fmt.Errorf("%w: it ended with exit code %d; its log:\n%s", ErrNotReady, s.Code(), s.Tail())
		case <-deadline.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %s (%s); its log:\n%s", ErrNotReady, problem, last, s.Tail())
		}
	}
}
