package main

import (
	"bytes"
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
