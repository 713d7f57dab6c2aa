package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fileOf returns a file with lines of results.
func fileOf(t *testing.T, lines string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bench.txt")
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	return file
}

func TestResultsOfAllFilesAreRead(t *testing.T) {
	first, second := fileOf(t, "BenchmarkOne-2 1 20 ns/op\nPASS\n"), fileOf(t, "BenchmarkTwo-2 1 20 ns/op\n")
	got, err := read([]string{first, second})
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, "One-2", got[0].Name.String())
	assert.Equal(t, "Two-2", got[1].Name.String())
}

func TestUnreadableResults(t *testing.T) {
	broken := fileOf(t, "BenchmarkEvent 1 20 ns/op 3\n")
	for name, test := range map[string]struct{ file, want string }{
		"a file that does not exist": {"testdata/nothing.txt", "read the results: open testdata/nothing.txt: no such file or directory"},
		"a line that breaks off":     {broken, "read the results: " + broken + ":1: missing units"},
		"a folder":                   {"testdata", "read the results: testdata:0: read testdata: is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.EqualError(t, run([]string{test.file}, io.Discard), test.want)
		})
	}
}
