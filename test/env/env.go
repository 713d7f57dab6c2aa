package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Env is a running control plane. Its User is a cluster admin.
type Env struct {
	*User

	dir   string // scratch files
	plane plane
	lease *lease // nil for a control plane outside the pool
}

// Start returns a control plane for a test, until the test ends: one of the pool if
// there is a pool and the options allow it, otherwise a new one. If it fails, so does
// the test.
func Start(tb testing.TB, opts ...Option) *Env {
	tb.Helper()
	e, err := Boot(tb.Context(), append(opts, func(o *options) { o.test = tb.Name() })...)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		if err := e.Stop(); err != nil {
			tb.Errorf("stop the control plane: %v", err)
		}
	})
	return e
}

// Boot is Start for a caller who calls Stop. It fails with ErrNoControlPlane if the
// binaries are missing.
func Boot(ctx context.Context, opts ...Option) (*Env, error) {
	o := gather(opts)
	found, err := findAssets(ctx, o.programs()...)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "overrule-env-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	e := &Env{dir: dir}
	if err := e.acquire(ctx, found, o); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	config, kubeconfig, err := e.plane.sign("admin", []string{masters})
	if err == nil {
		e.User, err = e.newUser("admin", config, kubeconfig)
	}
	if err == nil && e.lease != nil && len(o.crds) > 0 {
		err = e.InstallCRDs(o.crds...)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// acquire sets plane and lease.
func (e *Env) acquire(ctx context.Context, found assets, o options) (err error) {
	if o.poolable() {
		e.lease, err = takeLease(ctx, o)
		if err != nil {
			return err
		}
		e.plane = plane{e.lease.folder.Name(), found}
		return e.plane.renew(ctx, o)
	}
	e.plane = plane{e.File("plane"), found}
	if err := os.Mkdir(e.plane.dir, 0o700); err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	return e.plane.boot(ctx, o)
}

// Stop returns a control plane to the pool, or stops it. It removes the scratch files.
func (e *Env) Stop() error {
	var errs []error
	if e.lease != nil {
		errs = append(errs, e.lease.release())
	} else if e.plane.dir != "" {
		errs = append(errs, e.plane.stop())
	}
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}

// File returns the path of a new file in the scratch folder, which Stop removes.
func (e *Env) File(name string) string { return filepath.Join(e.dir, name) }
