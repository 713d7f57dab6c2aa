package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
)

// Repository returns the folder of this module, also for callers in modules that
// replace it by path.
func Repository(ctx context.Context) (string, error) {
	return ModuleFolder(ctx, "overrule.dev/overrule")
}

// folders caches those of modules by name: the go command is slow.
var folders sync.Map

// ModuleFolder returns the folder of a module that the module of the caller
// requires.
func ModuleFolder(ctx context.Context, module string) (string, error) {
	if dir, known := folders.Load(module); known {
		return dir.(string), nil //nolint:forcetypeassert // nothing else is in there
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the folder of module %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("module %s has no folder: run \"go mod download\"", module)
	}
	folders.Store(module, dir)
	return dir, nil
}

// PinnedModule returns the folder of a module that the go.mod in a folder requires; it is
// downloaded if necessary.
func PinnedModule(ctx context.Context, dir, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = dir
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil {
		return "", fmt.Errorf("download module %s, which %s/go.mod pins: %w", path, dir, errors.Join(err, jsonErr))
	}
	if found.Error != "" {
		return "", fmt.Errorf("download module %s, which %s/go.mod pins: %s", path, dir, found.Error)
	}
	return found.Dir, nil
}
