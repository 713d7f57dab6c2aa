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

// ErrNoProcess means that the process of kube-apiserver was not found.
var ErrNoProcess = errors.New("kube-apiserver does not run")

// stopTimeout is the time that kube-apiserver has to exit. It would wait a minute
// for watches to end.
const stopTimeout = 2 * time.Second

// StopAPIServer stops kube-apiserver as a node that shuts down does: with
// SIGTERM, and soon SIGKILL. Its etcd keeps running.
func (e *Env) StopAPIServer() error {
	if pid, err := e.apiServer(); err == nil { // otherwise it has exited
		kill := time.AfterFunc(stopTimeout, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		defer kill.Stop()
	}
	if err := e.plane.ControlPlane.GetAPIServer().Stop(); err != nil {
		return fmt.Errorf("stop kube-apiserver: %w", err)
	}
	return nil
}

// StartAPIServer starts kube-apiserver after StopAPIServer, with the same etcd,
// port, certificates and users. It returns once the API server is ready.
func (e *Env) StartAPIServer(ctx context.Context) error {
	if err := e.plane.ControlPlane.GetAPIServer().Start(); err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	return e.awaitReady(ctx)
}

// RestartAPIServer calls StopAPIServer and StartAPIServer.
func (e *Env) RestartAPIServer(ctx context.Context) error {
	if err := e.StopAPIServer(); err != nil {
		return err
	}
	return e.StartAPIServer(ctx)
}

// PauseAPIServer suspends kube-apiserver with all its connections open (SIGSTOP),
// until ResumeAPIServer.
func (e *Env) PauseAPIServer() error { return e.signalAPIServer(syscall.SIGSTOP) }

// ResumeAPIServer continues kube-apiserver after PauseAPIServer (SIGCONT).
func (e *Env) ResumeAPIServer() error { return e.signalAPIServer(syscall.SIGCONT) }

// KillAPIServer kills kube-apiserver (SIGKILL); StopAPIServer and StartAPIServer
// restart it.
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

// awaitReady waits for /readyz: envtest only waits for /healthz, which succeeds a
// little earlier.
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

// childWith returns the process id of the child of this process that was started
// with an argument: envtest does not export those of its programs.
func childWith(argument string) (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, fmt.Errorf("list the processes: %w", err)
	}
	for _, line := range lines {
		data, err := os.ReadFile(line)
		if err != nil || !bytes.Contains(data, []byte("\x00"+argument+"\x00")) {
			continue // another program, or one that has exited
		}
		folder := filepath.Dir(line)
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && parent(folder) == os.Getpid() {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("%w: no child of this process has the argument %s", ErrNoProcess, argument)
}

// parent returns the parent of a process by its folder in /proc; 0 if it has
// exited.
func parent(folder string) int {
	data, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return 0
	}
	// The name of the program, in brackets, may contain anything.
	_, rest, _ := strings.Cut(string(data[bytes.LastIndexByte(data, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	pid, _ := strconv.Atoi(fields[1])
	return pid
}
