package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoProcess says that the process of kube-apiserver was not found.
var ErrNoProcess = errors.New("kube-apiserver does not run")

// stopTimeout is what kube-apiserver has to end by itself. It would wait a minute
// for watches to end.
const stopTimeout = 2 * time.Second

// StopAPIServer ends kube-apiserver as a node that shuts down does: it is asked
// to end, and soon killed. Its etcd goes on.
func (e *Env) StopAPIServer() error {
	if pid, err := e.apiServer(); err == nil { // else it has ended
		kill := time.AfterFunc(stopTimeout, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		defer kill.Stop()
	}
	if err := e.plane.ControlPlane.GetAPIServer().Stop(); err != nil {
		return fmt.Errorf("stop kube-apiserver: %w", err)
	}
	return nil
}

// StartAPIServer starts kube-apiserver anew after StopAPIServer: on the same
// etcd and the same port, with the same certificates and users. It returns once
// the API server says that it is ready.
func (e *Env) StartAPIServer(ctx context.Context) error {
	if err := e.plane.ControlPlane.GetAPIServer().Start(); err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	return e.awaitReady(ctx)
}

// RestartAPIServer is StopAPIServer, and then StartAPIServer.
func (e *Env) RestartAPIServer(ctx context.Context) error {
	if err := e.StopAPIServer(); err != nil {
		return err
	}
	return e.StartAPIServer(ctx)
}

// PauseAPIServer makes kube-apiserver hang, with all its connections open
// (SIGSTOP), until ResumeAPIServer.
func (e *Env) PauseAPIServer() error { return e.signalAPIServer(syscall.SIGSTOP) }

// ResumeAPIServer has kube-apiserver go on after PauseAPIServer (SIGCONT).
func (e *Env) ResumeAPIServer() error { return e.signalAPIServer(syscall.SIGCONT) }

// KillAPIServer ends kube-apiserver without a word (SIGKILL); StopAPIServer and
// StartAPIServer bring it back.
func (e *Env) KillAPIServer() error { return e.signalAPIServer(syscall.SIGKILL) }

func (e *Env) signalAPIServer(s syscall.Signal) error {
	pid, err := e.apiServer()
	if err != nil {
		return fmt.Errorf("signal kube-apiserver: %w", err)
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("signal kube-apiserver (pid %d): %w", pid, err)
	}
	return nil
}

// apiServer returns the process id of kube-apiserver.
func (e *Env) apiServer() (int, error) {
	return childWith("--secure-port=" + e.plane.ControlPlane.GetAPIServer().Port)
}

// awaitReady waits for /readyz: envtest waits for /healthz alone, which says yes
// a little earlier.
func (e *Env) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		got := e.Kubectl("get", "--raw", "/readyz")
		if got.Code == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for kube-apiserver: %w: %s", ctx.Err(), got.Stderr)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// childWith returns the process id of the child of this process that was
// started with an argument: envtest keeps those of its programs to itself.
func childWith(argument string) (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, fmt.Errorf("list the processes: %w", err)
	}
	for _, line := range lines {
		data, err := os.ReadFile(line)
		if err != nil || !bytes.Contains(data, []byte("\x00"+argument+"\x00")) {
			continue // another program, or one that is gone
		}
		folder := filepath.Dir(line)
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && parent(folder) == os.Getpid() {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("%w: no child of this process has the argument %s", ErrNoProcess, argument)
}

// parent returns the parent of a process, by its folder in /proc; 0 if it is
// gone.
func parent(folder string) int {
	data, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return 0
	}
	// The name of the program, in brackets, may hold anything.
	_, rest, _ := strings.Cut(string(data[bytes.LastIndexByte(data, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	pid, _ := strconv.Atoi(fields[1])
	return pid
}
