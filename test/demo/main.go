// Command demo plays a story with real kubectl commands against a real API
// server that asks a real overrule. It ends with exit code 1 as soon as a command
// does not do what the story says. With -stay it boots the same, plays nothing,
// and stays up until it is interrupted.
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
	stay := flag.Bool("stay", false, "play nothing and stay up")
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

// demo boots everything, plays the story or waits, and ends everything, in any
// case.
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

// wait says how to use what is running, until it is interrupted.
func wait(ctx context.Context, out io.Writer, e *env.Env, s *server.Server, bin string) error {
	say(out, "everything is up; in another terminal:")
	say(out, "  export KUBECONFIG=%s", e.Kubeconfig)
	say(out, "  export PATH=%s:%s:$PATH", filepath.Dir(e.KubectlPath()), bin)
	say(out, "  kubectl apply -f examples/demo/00-cluster.yaml")
	say(out, "metrics are at http://%s/metrics; Ctrl-C ends everything", s.Metrics)
	select {
	case <-ctx.Done():
		return nil
	case <-s.Done():
		return fmt.Errorf("%w: it ended with exit code %d; its log:\n%s", server.ErrNotReady, s.Code(), s.Tail())
	}
}

func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
