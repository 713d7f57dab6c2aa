// Package tables reads tables of test cases, which are YAML.
package tables

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Read returns the table in a file. Each field that it has is one of T.
func Read[T any](t testing.TB, file string) T {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var out T
	require.NoError(t, yaml.UnmarshalStrict(data, &out), file)
	require.NotEmpty(t, out, file)
	return out
}

// Each runs a test for each file of a folder, by its name.
func Each[T any](t *testing.T, folder string, run func(*testing.T, T)) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { run(t, Read[T](t, file)) })
	}
}
