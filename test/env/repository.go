package env

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Repository is the folder of this module, wherever in it (or in a module that
// replaces it by path) the caller runs.
func Repository(ctx context.Context) (string, error) {
	return ModuleFolder(ctx, "overrule.dev/overrule")
}

// ModuleFolder is where the files of a module are that the module of the caller
// needs.
func ModuleFolder(ctx context.Context, module string) (string, error) {
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
