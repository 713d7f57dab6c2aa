// Package env runs a real etcd and kube-apiserver on free loopback ports, with
// the CRDs of Gateway API and of examples/crds, for tests and the demo.
package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"overrule.dev/overrule/test/process"
)

// patience is the maximum time for each start of etcd, the API server and its
// CRDs: long enough for a busy machine.
const patience = 2 * time.Minute

// Env is a running control plane. Its User is a cluster admin.
type Env struct {
	*User

	dir         string
	assets      assets
	plane       *envtest.Environment
	controllers *process.Process
	users       sync.Mutex // envtest signs one certificate at a time
}

// Start starts a control plane for a test, and stops it when the test ends. If it
// fails, so does the test.
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

// Boot starts a control plane; the caller calls Stop. It fails with
// ErrNoControlPlane if the binaries are missing.
func Boot(ctx context.Context, opts ...Option) (*Env, error) {
	o := gather(opts)
	if err := recordBoot(o.test, o); err != nil {
		return nil, err
	}
	e, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := e.boot(ctx, o); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// prepare finds the binaries and creates the scratch folder.
func prepare(ctx context.Context, o options) (*Env, error) {
	root, err := Repository(ctx)
	if err != nil {
		return nil, err
	}
	names := []string{"etcd", "kube-apiserver", "kubectl"}
	if o.controllers {
		names = append(names, "kube-controller-manager")
	}
	found, err := findAssets(root, names...)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "overrule-env-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	e := &Env{dir: dir, assets: found, plane: newPlane(found, o)}
	// The folder is kept during a restart, and the certificates with it.
	e.plane.ControlPlane.GetAPIServer().CertDir = e.File("kube-apiserver")
	if err := os.Mkdir(e.File("kube-apiserver"), 0o700); err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	return e, nil
}

func newPlane(found assets, o options) *envtest.Environment {
	off := false
	plane := &envtest.Environment{
		UseExistingCluster:       &off,
		BinaryAssetsDirectory:    string(found),
		ControlPlaneStartTimeout: patience,
		ControlPlaneStopTimeout:  patience,
	}
	server := plane.ControlPlane.GetAPIServer()
	for _, f := range o.flags {
		server.Configure().Set(f.name, f.values...)
	}
	return plane
}

func (e *Env) boot(ctx context.Context, o options) error {
	say(o, "starting etcd and kube-apiserver")
	config, err := e.plane.Start()
	if err != nil {
		return fmt.Errorf("start etcd and kube-apiserver of %s: %w", e.assets, err)
	}
	if e.User, err = e.newUser("admin", config, e.plane.KubeConfig); err != nil {
		return err
	}
	if err := e.installCRDs(ctx, o); err != nil {
		return err
	}
	if !o.controllers {
		return nil
	}
	say(o, "starting kube-controller-manager")
	return e.startControllers(ctx, o)
}

func say(o options, act string) { _, _ = fmt.Fprintln(o.progress, act) }

// Stop stops everything that Boot started, in reverse order, and removes its
// files.
func (e *Env) Stop() error {
	var errs []error
	if e.controllers != nil {
		errs = append(errs, e.controllers.Stop())
	}
	_ = e.ResumeAPIServer() // a suspended process cannot exit
	errs = append(errs, e.plane.Stop(), os.RemoveAll(e.dir))
	return errors.Join(errs...)
}

// File returns the path of a new file in the scratch folder, which Stop removes.
func (e *Env) File(name string) string { return filepath.Join(e.dir, name) }

// controllerManager is the user of the controllers.
const controllerManager = "system:kube-controller-manager"

func (e *Env) startControllers(ctx context.Context, o options) error {
	user, err := e.AddUser(ctx, controllerManager, []string{"system:masters"})
	if err != nil {
		return err
	}
	e.controllers, err = process.Start(process.Spec{
		Path: e.assets.path("kube-controller-manager"),
		Args: []string{
			"--kubeconfig", user.Kubeconfig,
			"--controllers=namespace-controller,garbage-collector-controller",
			fmt.Sprintf("--use-service-account-credentials=%t", o.accounts),
			"--leader-elect=false",
			"--secure-port=0",
		},
	})
	return err
}
