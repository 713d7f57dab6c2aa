// Package process runs a program in the background for a test or the demo, and
// stops it by its process id. For tests, it does the same with functions.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is the time after SIGTERM until a program is killed.
const grace = 30 * time.Second

// ErrKilled means that a program did not stop after SIGTERM and was killed.
var ErrKilled = errors.New("did not stop after SIGTERM and was killed")

// Spec is the program to run.
type Spec struct {
	// Path is the program's file.
	Path string
	// Args are its arguments, without the program's own name.
	Args []string
	// Env is its whole environment; nil is that of this process.
	Env []string
}

// Process is a program that was started. It is safe for concurrent use.
type Process struct {
	name    string
	cmd     *exec.Cmd
	started time.Time
	log     *log
	done    chan struct{}
	err     error // set before done is closed
}

// Start runs a program in its own process group, so that a Ctrl-C on the terminal
// reaches only its parent, which then stops it gracefully.
func Start(spec Spec) (*Process, error) {
	p := &Process{name: filepath.Base(spec.Path), log: &log{}, done: make(chan struct{})}
	p.cmd = exec.Command(spec.Path, spec.Args...) // outlives any context: Stop stops it
	p.cmd.Env = spec.Env
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.WaitDelay = time.Second // its children may keep its output open
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Age is the time since the program was started, including its loading.
func (p *Process) Age() time.Duration { return time.Since(p.started) }

// Done is closed once the program has stopped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the program stopped: nil for exit code 0. It is nil before Done is
// closed.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Code is the exit code of a program that has stopped, and -1 if it runs or was
// stopped by a signal.
func (p *Process) Code() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Log is the output of the program so far, stdout and stderr.
func (p *Process) Log() string { return p.log.String() }

// Tail is the end of the log, short enough for a message.
func (p *Process) Tail() string {
	const most = 8 << 10
	log := p.Log()
	if len(log) <= most {
		return log
	}
	log = log[len(log)-most:]
	_, log, _ = strings.Cut(log, "\n") // a whole line first
	return "...\n" + log
}

// Signal sends a signal to the program, if it runs.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s (pid %d): %w", p.name, p.PID(), err)
	}
	return nil
}

// Stop sends SIGTERM and waits until the program has stopped. After a while it is
// killed with its children, which is an error (ErrKilled). Stopping twice is
// allowed.
func (p *Process) Stop() error { return p.stop(grace) }

func (p *Process) stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
	}
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s and its children (group %d): %w", p.name, p.PID(), err)
	}
	<-p.done
	return fmt.Errorf("stop %s (pid %d): %w", p.name, p.PID(), ErrKilled)
}

// log collects what a program writes.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
