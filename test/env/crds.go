package env

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const gatewayAPI = "sigs.k8s.io/gateway-api"

// crdPaths returns the files and folders of the CRDs of the options.
func crdPaths(ctx context.Context, o options) ([]string, error) {
	if o.bare {
		return o.crds, nil
	}
	standard, err := crdFolders(ctx)
	return append(standard, o.crds...), err
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
func (e *Env) InstallCRDs(paths ...string) error { return e.plane.installCRDs(paths...) }

func (p plane) installCRDs(paths ...string) error {
	config, _, err := p.sign("admin", []string{masters})
	if err != nil {
		return err
	}
	for range 3 { // a busy API server may need longer than the minute that it gives itself
		_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: Patience})
		if !apierrors.IsTimeout(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("install the CRDs of %v: %w", paths, err)
	}
	return nil
}
