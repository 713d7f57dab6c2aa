package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// assetsVariable names the folder of control plane binaries, as in
// controller-runtime's envtest.
const assetsVariable = "KUBEBUILDER_ASSETS"

// ErrNoControlPlane means that a control plane binary is missing.
var ErrNoControlPlane = errors.New("no control plane binaries")

// assets is a folder with etcd, kube-apiserver, kubectl and, if required,
// kube-controller-manager.
type assets string

// findAssets returns the folder that KUBEBUILDER_ASSETS names, or
// bin/controlplane of the repository, if it has all the named programs.
func findAssets(ctx context.Context, names ...string) (assets, error) {
	folder := os.Getenv(assetsVariable)
	if folder == "" {
		repository, err := Repository(ctx)
		if err != nil {
			return "", err
		}
		folder = filepath.Join(repository, "bin", "controlplane")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("find the control plane: %w", err)
	}
	a := assets(folder)
	for _, name := range names {
		if info, err := os.Stat(a.path(name)); err != nil || info.IsDir() {
			return "", fmt.Errorf("%w: %s is not in %s; run \"make controlplane\", or let %s name a folder that has %s",
				ErrNoControlPlane, name, folder, assetsVariable, strings.Join(names, ", "))
		}
	}
	return a, nil
}

func (a assets) path(name string) string { return filepath.Join(string(a), name) }
