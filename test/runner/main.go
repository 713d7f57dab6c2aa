// Command runner runs groups of tests with "go test", two groups at a time, and each test
// that failed once more, alone, when all groups have ended:
//
//	runner -- FLAG... PACKAGE... [-- FLAG... PACKAGE...]...
//
// A test that passes then is flaky: the run passes, and ends with the list of these tests
// and how each failed first. Otherwise the run fails, and its first failure is printed
// last, whole. Values of flags are separated with "=". The flag -C=DIR runs a group in
// the folder of another module.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	groups, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(2)
	}
	r := &runner{out: os.Stdout, test: goTest}
	r.run(ctx, groups)
	if !r.report() {
		os.Exit(1)
	}
}

// group is one call of "go test".
type group struct {
	dir             string // "" for the current one
	flags, packages []string
}

// parse returns the groups of the arguments.
func parse(args []string) ([]group, error) {
	var groups []group
	for _, arg := range args {
		switch {
		case arg == "--":
			groups = append(groups, group{})
		case len(groups) == 0:
			return nil, fmt.Errorf("argument %q before the first --", arg)
		default:
			g := &groups[len(groups)-1]
			if dir, ok := strings.CutPrefix(arg, "-C="); ok {
				g.dir = dir
			} else if strings.HasPrefix(arg, "-") {
				g.flags = append(g.flags, arg)
			} else {
				g.packages = append(g.packages, arg)
			}
		}
	}
	for _, g := range groups {
		if len(g.packages) == 0 {
			return nil, fmt.Errorf("no packages after the flags %q", g.flags)
		}
	}
	return groups, nil
}

// runner runs groups of tests.
type runner struct {
	mu  sync.Mutex // for out
	out io.Writer
	// test runs "go test -json" with arguments in a folder, and writes its output.
	test func(ctx context.Context, dir string, args []string, out io.Writer) error

	passed   int // packages
	failures []failure
	flaky    []failure
}

// failure is a test, or a package if Test is empty, that failed.
type failure struct {
	pkg, test string
	output    string
	group     group
}

func (f failure) String() string {
	if f.test == "" {
		return f.pkg
	}
	return f.pkg + "." + f.test
}

// run runs the groups, two at a time, since the tests of one may wait for control planes,
// and then each failed test alone.
func (r *runner) run(ctx context.Context, groups []group) {
	began := time.Now()
	all := make([]*results, len(groups))
	var running errgroup.Group
	running.SetLimit(2)
	for i, g := range groups {
		running.Go(func() error {
			all[i] = r.groupResult(ctx, g.dir, slices.Concat(g.flags, g.packages))
			_, _ = fmt.Fprintf(r, "== %d packages passed, %d tests failed, after %.0f s\n", all[i].passed, len(all[i].failures), time.Since(began).Seconds())
			return nil
		})
	}
	_ = running.Wait() // the results have the errors
	var failed []failure
	for i, res := range all {
		r.passed += res.passed
		for _, f := range res.failures {
			f.group = groups[i]
			failed = append(failed, f)
		}
	}
	for _, f := range failed {
		_, _ = fmt.Fprintf(r.out, "== %s failed:\n%s", f, f.output)
		if f.test != "" && ctx.Err() == nil && r.passesAlone(ctx, f) {
			r.flaky = append(r.flaky, f)
		} else {
			r.failures = append(r.failures, f)
		}
	}
}

// passesAlone runs a test again, without others beside it.
func (r *runner) passesAlone(ctx context.Context, f failure) bool {
	_, _ = fmt.Fprintf(r.out, "== %s runs again\n", f)
	again := r.groupResult(ctx, f.group.dir, append(slices.Clone(f.group.flags), "-count=1", "-run=^"+f.test+"$", f.pkg))
	return len(again.failures) == 0 && again.passed == 1
}

// Write writes to the output, which groups share.
func (r *runner) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *runner) groupResult(ctx context.Context, dir string, args []string) *results {
	res := newResults(r)
	if err := r.test(ctx, dir, args, res); err != nil && len(res.failures) == 0 {
		res.failures = append(res.failures, failure{pkg: "go test", output: err.Error() + "\n" + res.other.String()})
	}
	return res
}

// report prints the result, and reports whether the run passed.
func (r *runner) report() bool {
	for _, f := range r.flaky {
		_, _ = fmt.Fprintf(r.out, "flaky: %s passed when it ran again; fix it next. It failed first with:\n%s", f, f.output)
	}
	for _, f := range r.failures {
		_, _ = fmt.Fprintf(r.out, "failed: %s\n", f)
	}
	_, _ = fmt.Fprintf(r.out, "%d passed, %d failed\n", r.passed+r.recovered(), len(r.failures))
	if len(r.failures) == 0 {
		return true
	}
	_, _ = fmt.Fprintf(r.out, "== the first failure: %s\n%s", r.failures[0], r.failures[0].output)
	return false
}

// recovered counts the packages whose failed tests all passed when they ran again.
func (r *runner) recovered() int {
	names := map[string]bool{}
	for _, f := range r.flaky {
		names[f.pkg] = true
	}
	for _, f := range r.failures {
		delete(names, f.pkg)
	}
	return len(names)
}

// goTest runs the go command. The race detector needs cgo.
func goTest(ctx context.Context, dir string, args []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	if slices.Contains(args, "-race") {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.Run()
}
