// Package commands has the commands of the kubectl plugin.
package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"overrule.dev/overrule/internal/cache"
)

// Run runs the command that the arguments name and returns the exit code of
// the process: 0 found or allowed, 1 not found or denied, 2 unreadable input or
// wrong usage.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	a := &app{
		IOStreams: streams,
		now:       time.Now, list: cache.List, listProfiles: cache.ListProfiles,
		color: printers.AllowsColorOutput(streams.Out),
	}
	return a.run(ctx, args)
}

// Exit codes.
const (
	exitOK       = 0 // found, allowed, nothing is wrong
	exitNegative = 1 // not found, denied, something is wrong
	exitError    = 2 // input that cannot be read, or wrong usage
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
		return exitOK
	case errors.Is(err, errDenied), errors.Is(err, errViolations):
		return exitNegative
	}
	_, _ = fmt.Fprintf(a.ErrOut, "error: %v\n", err) // nobody is left to tell
	if errors.Is(err, errNotFound) {
		return exitNegative
	}
	return exitError
}
