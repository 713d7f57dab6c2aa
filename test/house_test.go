// Package test holds what concerns the repository as a whole.
package test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const (
	module  = "overrule.dev/overrule"
	celGo   = "github.com/google/cel-go"
	celOnly = "internal/cel"
)

// house is the order of the packages: each may import what its row names, and
// what those may import in their turn, since their types appear in its API.
// A package that is new gets a row here and a rule in .golangci.yml.
var house = map[string][]string{
	"cmd/overrule":         {"webhook", "certs", "internal/build", "internal/canary", "internal/refresh", "internal/report", "internal/rights", "internal/status", "internal/sweep", "internal/watch", "internal/manifest"},
	"cmd/kubectl-overrule": {"internal/build", "internal/guard", "internal/report", "internal/rights", "internal/watch", "internal/manifest"},
	"webhook":              {"internal/flight", "internal/note"},
	"certs":                {},
	"internal/build":       {},
	"internal/canary":      {"internal/background", "api"},
	"internal/report":      {"internal/effective", "internal/hierarchy"},
	"internal/status":      {"internal/watch"},
	"internal/watch":       {"internal/background", "internal/store", "internal/policykind"},
	"internal/manifest":    {"internal/store", "internal/policykind"},
	"internal/sweep":       {"internal/background", "internal/guard"},
	"internal/refresh":     {"internal/background", "internal/note"},
	"internal/flight":      {"internal/guard"},
	"internal/note":        {"internal/effective"},
	"internal/rights":      {"api"},
	"internal/guard":       {"internal/effective", "internal/store", "internal/cel", "internal/conform", "internal/constraint"},
	"internal/conform":     {"internal/effective", "internal/policykind"},
	"internal/effective":   {"merge", "internal/hierarchy", "internal/policykind", "internal/store"},
	"internal/store":       {"internal/hierarchy", "internal/policykind", "internal/constraint"},
	"internal/constraint":  {"internal/cel", "internal/hierarchy", "api"},
	"internal/policykind":  {"merge", "internal/cel", "internal/decode", "internal/ratelimit", "api"},
	"internal/ratelimit":   {"internal/hierarchy"},
	"internal/cel":         {"merge", "api"},
	"internal/hierarchy":   {"api", "internal/decode"},
	"internal/decode":      {},
	"internal/background":  {},
	"merge":                {},
	"api":                  {},
}

// outside are the folders that may import whatever they like.
var outside = []string{"test", "examples", "deploy", "docs"}

// allowed are the rows that a row's packages may import, its own included.
func allowed(row string) []string {
	seen := []string{row}
	for i := 0; i < len(seen); i++ {
		for _, below := range house[seen[i]] {
			if !slices.Contains(seen, below) {
				seen = append(seen, below)
			}
		}
	}
	slices.Sort(seen)
	return seen
}

// rowOf is the row that a package of ours belongs to: the longest that is its
// path or a folder above it.
func rowOf(importPath string) (string, bool) {
	path := strings.TrimPrefix(importPath, module+"/")
	for ; path != "."; path = filepath.Dir(path) {
		if _, ok := house[path]; ok {
			return path, true
		}
	}
	return "", false
}

func isOutside(importPath string) bool {
	top, _, _ := strings.Cut(strings.TrimPrefix(importPath, module+"/"), "/")
	return slices.Contains(outside, top)
}

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func (p pkg) ours() bool { return strings.HasPrefix(p.ImportPath, module+"/") }

// packages are all packages of the module and all that they depend on.
func packages(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "./...")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	all := map[string]pkg{}
	decoder := json.NewDecoder(out)
	for {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all[p.ImportPath] = p
	}
	require.NoError(t, cmd.Wait())
	return all
}

func TestPackagesImportOnlyWhatIsBelowThem(t *testing.T) {
	for path, p := range packages(t) {
		if !p.ours() || isOutside(path) {
			continue
		}
		row, ok := rowOf(path)
		if !assert.True(t, ok, "%s has no row in the house: add one to this test, with a rule in .golangci.yml", path) {
			continue
		}
		for _, imported := range p.Imports {
			assert.False(t, !strings.HasPrefix(row, celOnly) && strings.HasPrefix(imported, celGo),
				"%s imports %s; only %s may", path, imported, celOnly)
			if !strings.HasPrefix(imported, module+"/") {
				continue
			}
			below, ok := rowOf(imported)
			assert.True(t, ok && slices.Contains(allowed(row), below), "%s imports %s, which is not below it in the house", path, imported)
		}
	}
}

func TestTheEngineNeedsTheStandardLibraryAlone(t *testing.T) {
	all := packages(t)
	for path, p := range all {
		if row, _ := rowOf(path); row != "merge" || !p.ours() {
			continue
		}
		for _, dep := range p.Deps {
			own, _ := rowOf(dep)
			assert.True(t, all[dep].Standard || own == "merge", "%s depends on %s", path, dep)
		}
	}
}

type rule struct {
	ListMode string   `json:"list-mode"`
	Files    []string `json:"files"`
	Allow    []string `json:"allow"`
	Deny     []struct {
		Pkg string `json:"pkg"`
	} `json:"deny"`
}

// The linter has the same table, for whoever does not run the tests.
func TestTheLinterKeepsTheSameHouse(t *testing.T) {
	content, err := os.ReadFile("../.golangci.yml")
	require.NoError(t, err)
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]rule `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
		} `json:"linters"`
	}
	require.NoError(t, yaml.Unmarshal(content, &config))
	rules := config.Linters.Settings.Depguard.Rules
	for row := range house {
		got, ok := rules[row]
		if !assert.True(t, ok, "%s has no depguard rule", row) {
			continue
		}
		want := []string{}
		for _, below := range allowed(row) {
			want = append(want, module+"/"+below)
		}
		if row == "merge" {
			assert.Equal(t, "strict", got.ListMode, row)
			want = append(want, "$gostd")
		} else {
			require.Len(t, got.Deny, 1, row)
			assert.Equal(t, module, got.Deny[0].Pkg, row)
		}
		assert.ElementsMatch(t, want, got.Allow, row)
		assert.Equal(t, []string{"**/" + row + "/**", "!$test"}, got.Files, row)
	}
}
