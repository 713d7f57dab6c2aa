package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/klog/v2"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/lookup"
)

// Run runs the command that the arguments name and returns the exit code of
// the process: 0 for success, 1 for a negative result (not found, denied,
// violations), 2 for an error.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	klog.SetLogger(logr.Discard()) // what fails is in the error of the command
	a := &app{reader: reader{
		terminal:   terminal{IOStreams: streams, color: printers.AllowsColorOutput(streams.Out)},
		connection: connection{list: cache.List, listProfiles: cache.ListProfiles},
	}, now: time.Now}
	return a.run(ctx, args)
}

// Exit codes.
const (
	exitOK       = 0 // found, allowed, no violations
	exitNegative = 1 // not found, denied, violations, not served
	exitError    = 2 // invalid input or usage, or the cluster cannot be read
)

// errNegative is returned if a change is denied, or there are violations. They are on stdout.
var errNegative = errors.New("denied, or violations found")

// errNotFound is returned if an object, rule or section does not exist.
var errNotFound = lookup.ErrNotFound

// run runs one command and returns its exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()                          //nolint:contextcheck // cobra passes the context to the commands
	root.SetArgs(append([]string{}, args...)) // with nil, cobra uses os.Args
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNegative), errors.Is(err, lookup.ErrNotServed):
		return exitNegative
	}
	_, _ = fmt.Fprintf(a.ErrOut, "error: %v\n", err) // a failed write to stderr cannot be reported
	if errors.Is(err, errNotFound) {
		return exitNegative
	}
	return exitError
}
