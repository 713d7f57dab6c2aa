package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// ErrStory means that a command did not do what its step expects.
var ErrStory = errors.New("unexpected result")

// step is one command of the story and what it must do.
type step struct {
	say     string // what the command does, and why
	command string // shown as typed
	code    int    // the exit code
	stdout  []string
	stderr  []string // required parts; if empty, stderr must be empty
}

// pauseBetweenCommands is about that of a person: the server observes a write by
// a watch, some milliseconds after it was stored.
const pauseBetweenCommands = 300 * time.Millisecond

// player runs steps and prints them with their output.
type player struct {
	out     io.Writer
	paint   painter
	dir     string
	environ []string
	beat    time.Duration
}

// play runs the steps in order, up to the first with an unexpected result.
func (p player) play(ctx context.Context, steps []step) error {
	for i, s := range steps {
		say(p.out, "\n%s", p.paint.title(fmt.Sprintf("%d. %s", i+1, s.say)))
		say(p.out, "%s", p.paint.command("$ "+s.command))
		if err := p.step(ctx, s); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, s.command, err)
		}
		time.Sleep(p.beat)
	}
	say(p.out, "\n%s", p.paint.title(fmt.Sprintf("All %d commands did what was expected.", len(steps))))
	return nil
}

func (p player) step(ctx context.Context, s step) error {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-c", s.command)
	cmd.Dir, cmd.Env = p.dir, p.environ
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	_, _ = fmt.Fprint(p.out, p.paint.stderr(stderr.String()), stdout.String())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	return s.compare(cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
}

// compare returns an error for each difference from what the step expects.
func (s step) compare(code int, stdout, stderr string) error {
	var errs []error
	if code != s.code {
		errs = append(errs, fmt.Errorf("%w: exit code %d, want %d", ErrStory, code, s.code))
	}
	for _, part := range s.stdout {
		if !strings.Contains(stdout, part) {
			errs = append(errs, fmt.Errorf("%w: stdout does not contain %q", ErrStory, part))
		}
	}
	for _, part := range s.stderr {
		if !strings.Contains(stderr, part) {
			errs = append(errs, fmt.Errorf("%w: stderr does not contain %q", ErrStory, part))
		}
	}
	if len(s.stderr) == 0 && stderr != "" {
		errs = append(errs, fmt.Errorf("%w: stderr is not empty", ErrStory))
	}
	return errors.Join(errs...)
}
