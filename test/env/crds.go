package env

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const gatewayAPI = "sigs.k8s.io/gateway-api"

// installCRDs installs the CRDs of the options and waits until they are served.
func (e *Env) installCRDs(ctx context.Context, o options) error {
	paths := o.crds
	if !o.bare {
		standard, err := crdFolders(ctx)
		if err != nil {
			return err
		}
		paths = append(standard, paths...)
	}
	if len(paths) == 0 {
		return nil
	}
	say(o, "installing the CRDs of Gateway API and of the policies")
	return e.InstallCRDs(paths...)
}

// crdFolders returns the folders of Gateway API's standard channel, of Overrule
// itself and of examples/crds.
func crdFolders(ctx context.Context) ([]string, error) {
	root, err := Repository(ctx)
	if err != nil {
		return nil, err
	}
	gw, err := ModuleFolder(ctx, gatewayAPI)
	if err != nil {
		return nil, err
	}
	return []string{
		filepath.Join(gw, "config", "crd", "standard"),
		filepath.Join(root, "deploy", "crds"),
		filepath.Join(root, "examples", "crds"),
	}, nil
}

// TouchCRDs edits a label of each CRD. The API server may miss the deletion of a
// CRD that was just created, and notices it at the next change.
func (e *Env) TouchCRDs() {
	e.Kubectl("label", "crds", "--all", "--overwrite", fmt.Sprintf("touched=%d", time.Now().UnixNano()))
}

// InstallCRDs installs the CRDs in files or folders and waits until they are
// served. It creates or updates them without the annotation of client-side apply,
// which would be too large for some.
func (e *Env) InstallCRDs(paths ...string) error {
	_, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{
		Paths: paths, ErrorIfPathMissing: true, MaxTime: patience,
	})
	if err != nil {
		return fmt.Errorf("install the CRDs of %v: %w", paths, err)
	}
	return nil
}
