package env

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
)

// Repository is the folder of this module, wherever in it (or in a module that
// replaces it by path) the caller runs.
func Repository(ctx context.Context) (string, error) {
	return ModuleFolder(ctx, "overrule.dev/overrule")
}

// folders are those of modules, by name: go takes a while to answer.
var folders sync.Map

// ModuleFolder is where the files of a module are that the module of the caller
// needs.
func ModuleFolder(ctx context.Context, module string) (string, error) {
	if dir, known := folders.Load(module); known {
		return dir.(string), nil //nolint:forcetypeassert // nothing else is in there
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("ask go for the folder of module %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("module %s has no folder: run \"go mod download\"", module)
	}
	folders.Store(module, dir)
	return dir, nil
}
