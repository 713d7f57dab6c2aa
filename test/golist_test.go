// Package test holds tests of the repository as a whole: its packages, its
// dependencies and its docs.
package test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "overrule.dev/overrule"

var update = flag.Bool("update", false, "write what is generated in docs/architecture.md")

// A listedPackage is a package as "go list" prints it.
type listedPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	GoFiles    []string
	Export     string
}

// goList returns packages of the module and all that they depend on, built
// as the server is, by import path.
func goList(fields string, packages ...string) (map[string]listedPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-tags", serverTags, "-json=" + fields}, packages...)...)
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	all := map[string]listedPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listedPackage
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
	return all, nil
}

// goListAll lists all packages. It runs once, since it takes most of the time of these tests.
var goListAll = sync.OnceValues(func() (map[string]listedPackage, error) { return goList("ImportPath,Standard,Imports", "./...") })

func listed(t *testing.T) map[string]listedPackage {
	t.Helper()
	// "go list" is a separate process, whose reads "go test" does not track:
	// reading the folders here invalidates the cached result when a file changes.
	files(t, ".go")
	all, err := goListAll()
	require.NoError(t, err)
	return all
}

// program returns the packages of the module except those of the folder test.
func program(t *testing.T) []listedPackage {
	t.Helper()
	var out []listedPackage
	for path, p := range listed(t) {
		if ours(path) && path != module+"/test" && !strings.HasPrefix(path, module+"/test/") {
			out = append(out, p)
		}
	}
	require.NotEmpty(t, out)
	return out
}

func ours(importPath string) bool { return strings.HasPrefix(importPath, module+"/") }

// dependencies returns the import paths of the packages that a package depends
// on, its own included.
func dependencies(t *testing.T, importPath string) []string {
	t.Helper()
	all := listed(t)
	out, seen := []string{importPath}, map[string]bool{importPath: true}
	for i := 0; i < len(out); i++ {
		for _, imported := range all[out[i]].Imports {
			if !seen[imported] {
				seen[imported] = true
				out = append(out, imported)
			}
		}
	}
	return out
}
