// Command planes runs a command, such as go test, with a pool of control planes that
// its packages share, and then stops them:
//
//	planes [-n COUNT] COMMAND [ARGUMENT...]
//
// A control plane boots when a test needs it. The command gets OVERRULE_PLANES.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"overrule.dev/overrule/test/env"
)

func main() {
	n := flag.Int("n", runtime.NumCPU(), "the most control planes")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: planes [-n COUNT] COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	os.Exit(env.WithPool(*n, func() int { return run(flag.Args()) }))
}

// run returns the exit code of a command. Signals are left to it, so that the control
// planes are stopped after it.
func run(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "planes:", err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "planes:", err)
		return 1
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1 // ended by a signal
}
