package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// assetsVariable names the folder of control plane binaries to use, as
// controller-runtime's envtest does.
const assetsVariable = "KUBEBUILDER_ASSETS"

// ErrNoControlPlane says that a control plane binary is missing.
var ErrNoControlPlane = errors.New("no control plane binaries")

// assets is a folder with etcd, kube-apiserver, kubectl and, where it is asked
// for, kube-controller-manager.
type assets string

// findAssets returns the folder that KUBEBUILDER_ASSETS names, or else
// bin/controlplane of the repository, once it has all the named programs.
func findAssets(repository string, names ...string) (assets, error) {
	folder := os.Getenv(assetsVariable)
	if folder == "" {
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

// repository is the folder of this module, wherever in it (or in a module that
// replaces it by path) the caller runs.
func repository(ctx context.Context) (string, error) {
	return moduleFolder(ctx, "overrule.dev/overrule")
}

// moduleFolder asks go where a module's files are.
func moduleFolder(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("ask go for the folder of module %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("module %s has no folder: run \"go mod download\"", module)
	}
	return dir, nil
}
