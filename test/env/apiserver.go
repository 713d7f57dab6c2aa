package env

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// ErrNoProcess means that a program of the control plane does not run, or is not ready.
var ErrNoProcess = errors.New("a program of the control plane does not run")

// StopAPIServer stops kube-apiserver as a node that shuts down does: with
// SIGTERM, and soon SIGKILL. Its etcd keeps running.
func (e *Env) StopAPIServer() error { return e.plane.end(apiServerProgram, syscall.SIGTERM) }

// StartAPIServer starts kube-apiserver after StopAPIServer, with the same etcd,
// port, certificates and users. It returns once the API server is ready.
func (e *Env) StartAPIServer(ctx context.Context) error {
	if err := e.plane.restart(apiServerProgram); err != nil {
		return err
	}
	return e.plane.awaitAPIServer(ctx)
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
func (e *Env) PauseAPIServer() error { return e.plane.signal(syscall.SIGSTOP) }

// ResumeAPIServer continues kube-apiserver after PauseAPIServer (SIGCONT).
func (e *Env) ResumeAPIServer() error { return e.plane.signal(syscall.SIGCONT) }

// KillAPIServer kills kube-apiserver (SIGKILL); StopAPIServer and StartAPIServer
// restart it.
func (e *Env) KillAPIServer() error { return e.plane.end(apiServerProgram, syscall.SIGKILL) }

func (p plane) signal(s syscall.Signal) error {
	pid := p.find(apiServerProgram)
	if pid == 0 {
		return ErrNoProcess
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("signal kube-apiserver (pid %d): %w", pid, err)
	}
	return nil
}

// Etcd returns the URL of etcd. It needs no credentials.
func (e *Env) Etcd() string { return e.plane.etcd() }

func (p plane) etcd() string { return p.argument(etcdProgram, "listen-client-urls") }
