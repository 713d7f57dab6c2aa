// Command demo runs real kubectl commands against a real API server that calls a
// real overrule, and shows them with their output. It exits with code 1 as soon as
// a command does not do what is expected. With -stay it starts the same servers,
// runs no commands, and keeps running until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	ctrl "sigs.k8s.io/controller-runtime"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

func main() {
	stay := flag.Bool("stay", false, "run no commands and keep running")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo(ctx, os.Stdout, newPainter(term.IsTerminal(int(os.Stdout.Fd())), os.Getenv), *stay)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo starts the servers, runs the story or waits, and always stops the servers.
func demo(ctx context.Context, out io.Writer, paint painter, stay bool) (err error) {
	root, err := env.Repository(ctx)
	if err != nil {
		return err
	}
	e, err := env.Boot(ctx, env.WithProgress(out))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	if err := installEnvoyGateway(ctx, e, root); err != nil {
		return err
	}
	say(out, "starting overrule")
	s, err := server.Boot(ctx, e, server.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()

	bin := filepath.Join(root, "bin")
	if stay {
		return wait(ctx, out, e, s, bin)
	}
	p := player{out: out, paint: paint, dir: root, environ: e.Environ(bin), beat: pauseBetweenCommands}
	if err := p.play(ctx, story); ctx.Err() != nil {
		return err
	} else if err != nil {
		return fmt.Errorf("%w\nthe server's log:\n%s", err, s.Tail())
	}
	return nil
}

// installEnvoyGateway installs the definition of SecurityPolicies, from Envoy Gateway's module.
func installEnvoyGateway(ctx context.Context, e *env.Env, root string) error {
	dir, err := env.PinnedModule(ctx, filepath.Join(root, "test", "kinds", "crds"), "github.com/envoyproxy/gateway")
	if err != nil {
		return err
	}
	return e.InstallCRDs(filepath.Join(dir, "charts", "gateway-helm", "charts", "crds", "crds", "generated", "gateway.envoyproxy.io_securitypolicies.yaml"))
}

// wait prints how to use the servers, and returns when it is interrupted.
func wait(ctx context.Context, out io.Writer, e *env.Env, s *server.Server, bin string) error {
	say(out, "the servers are running; in another terminal:")
	say(out, "  export KUBECONFIG=%s", e.Kubeconfig)
	say(out, "  export PATH=%s:%s:$PATH", filepath.Dir(e.KubectlPath()), bin)
	say(out, "  kubectl apply -f examples/demo/00-cluster.yaml")
	say(out, "metrics are at http://%s/metrics; Ctrl-C stops everything", s.Metrics)
	select {
	case <-ctx.Done():
		return nil
	case <-s.Done():
		return fmt.Errorf("%w: exited with code %d; log:\n%s", server.ErrNotReady, s.Code(), s.Tail())
	}
}

func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
