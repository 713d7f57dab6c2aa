// Command kubectl-overrule is a kubectl plugin (kubectl overrule) that shows
// effective policies and judges changes, on a cluster or on manifests alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"overrule.dev/overrule/internal/cache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := &app{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		now:       time.Now, list: cache.List, listProfiles: cache.ListProfiles,
		color: printers.AllowsColorOutput(os.Stdout),
	}
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitFound    = 0 // found, allowed, nothing is wrong
	exitNotFound = 1 // not found, denied, something is wrong
	exitUnusable = 2 // input that cannot be read, or wrong usage
)

// errDenied tells that a change is denied; what for is on stdout.
var errDenied = errors.New("denied")

// errNotFound tells that what was asked for does not exist.
var errNotFound = errors.New("not found")

// run runs one command and returns its exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()                          //nolint:contextcheck // cobra hands the context to the commands
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFound
	case errors.Is(err, errDenied), errors.Is(err, errViolated):
		return exitNotFound
	}
	_, _ = fmt.Fprintf(a.ErrOut, "error: %v\n", err) // nobody is left to tell
	if errors.Is(err, errNotFound) {
		return exitNotFound
	}
	return exitUnusable
}
