package env

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// savedEtcd is the folder with what etcd stored at the time of SaveEtcd.
const savedEtcd = "etcd-saved"

// SaveEtcd stops etcd for a moment and copies what it stores, for RestoreEtcd.
func (e *Env) SaveEtcd(ctx context.Context) error {
	p := e.plane
	if err := p.end(etcdProgram, syscall.SIGTERM); err != nil {
		return err
	}
	if err := os.CopyFS(p.file(savedEtcd), os.DirFS(p.file("etcd"))); err != nil {
		return fmt.Errorf("save etcd: %w", err)
	}
	return p.restartEtcd(ctx)
}

// RestoreEtcd replaces what etcd stores by what it stored at the time of SaveEtcd, and
// restarts kube-apiserver, as a restore from a backup does.
func (e *Env) RestoreEtcd(ctx context.Context) error {
	p := e.plane
	for _, name := range []string{apiServerProgram, etcdProgram} {
		if err := p.end(name, syscall.SIGKILL); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(p.file("etcd")); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.Rename(p.file(savedEtcd), p.file("etcd")); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := p.restartEtcd(ctx); err != nil {
		return err
	}
	return e.StartAPIServer(ctx)
}

// restartEtcd starts etcd again, with the same port.
func (p plane) restartEtcd(ctx context.Context) error {
	if err := p.restart(etcdProgram); err != nil {
		return err
	}
	return p.awaitEtcd(ctx, p.etcd())
}
