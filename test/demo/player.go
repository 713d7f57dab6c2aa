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

// ErrStory says that a command did not do what the story says.
var ErrStory = errors.New("the story did not go as told")

// step is one command of the story and what it must do.
type step struct {
	say     string // what is about to happen, and why
	command string // shown as typed
	code    int    // the exit code
	stdout  []string
	stderr  []string // parts that must be there; with none, nothing may be
}

// pauseBetweenCommands lies between two commands, as between those of a person: the server hears
// of a write by a watch, some milliseconds after it was stored.
const pauseBetweenCommands = 300 * time.Millisecond

// player runs steps and shows them.
type player struct {
	out     io.Writer
	paint   painter
	dir     string
	environ []string
	beat    time.Duration
}

// play runs the steps in order, up to the first that is not as told.
func (p player) play(ctx context.Context, steps []step) error {
	for i, s := range steps {
		say(p.out, "\n%s", p.paint.title(fmt.Sprintf("%d. %s", i+1, s.say)))
		say(p.out, "%s", p.paint.command("$ "+s.command))
		if err := p.step(ctx, s); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, s.command, err)
		}
		time.Sleep(p.beat)
	}
	say(p.out, "\n%s", p.paint.title(fmt.Sprintf("All %d commands did what the story says.", len(steps))))
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

// compare says all that is not as told.
func (s step) compare(code int, stdout, stderr string) error {
	var errs []error
	if code != s.code {
		errs = append(errs, fmt.Errorf("%w: exit code %d, not %d", ErrStory, code, s.code))
	}
	for _, part := range s.stdout {
		if !strings.Contains(stdout, part) {
			errs = append(errs, fmt.Errorf("%w: stdout does not have %q", ErrStory, part))
		}
	}
	for _, part := range s.stderr {
		if !strings.Contains(stderr, part) {
			errs = append(errs, fmt.Errorf("%w: stderr does not have %q", ErrStory, part))
		}
	}
	if len(s.stderr) == 0 && stderr != "" {
		errs = append(errs, fmt.Errorf("%w: stderr is not empty", ErrStory))
	}
	return errors.Join(errs...)
}
