package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table has medians, reads several files, and meets a limit to the digit.
func TestTheTable(t *testing.T) {
	want, err := os.ReadFile("testdata/table.txt")
	require.NoError(t, err)
	more := filepath.Join(t.TempDir(), "bench.txt")
	require.NoError(t, os.WriteFile(more, []byte("BenchmarkOnOneCPU 1 20 ns/op\nPASS\n"), 0o600))
	var got bytes.Buffer
	require.NoError(t, run([]string{"testdata/bench.txt", more}, &got))
	assert.Equal(t, string(want), got.String())
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestUnreadableResults(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "bench.txt")
	require.NoError(t, os.WriteFile(broken, []byte("BenchmarkEvent 1 20 ns/op 3\n"), 0o600))
	require.ErrorContains(t, run([]string{"testdata/nothing.txt"}, io.Discard), "read the results: open testdata/nothing.txt: ")
	require.EqualError(t, run([]string{broken}, io.Discard), "read the results: "+broken+":1: missing units")
	require.EqualError(t, run([]string{"testdata/bench.txt"}, fullDisk{}), "write the table: the disk is full")
}
