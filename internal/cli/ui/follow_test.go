package ui

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, file, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
}

func TestFilesNoticeChanges(t *testing.T) {
	for name, test := range map[string]struct {
		path   string // that is followed
		change func(t *testing.T, dir string)
	}{
		"a file is written": {"a.yaml", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a.yaml"), "b") }},
		"a file is replaced, as editors do": {"a.yaml", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a.yaml~"), "b")
			require.NoError(t, os.Rename(filepath.Join(dir, "a.yaml~"), filepath.Join(dir, "a.yaml")))
		}},
		"a file is deleted":                {"a.yaml", func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "a.yaml"))) }},
		"a file of a directory is created": {".", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "b.yaml"), "b") }},
		"a file below is written":          {".", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "below", "c.yaml"), "b") }},
		"a new directory":                  {".", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "new", "d.yaml"), "b") }},
		"a linked file is written":         {"link.yaml", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "below", "c.yaml"), "b") }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "a.yaml"), "a")
			write(t, filepath.Join(dir, "below", "c.yaml"), "a")
			require.NoError(t, os.Symlink(filepath.Join(dir, "below", "c.yaml"), filepath.Join(dir, "link.yaml")))
			f, err := NewFiles([]string{filepath.Join(dir, test.path)})
			require.NoError(t, err)
			defer func() { assert.NoError(t, f.Close()) }()
			test.change(t, dir)
			assert.NoError(t, f.Wait(t.Context()))
		})
	}
}

func TestFilesFollowNewDirectories(t *testing.T) {
	dir := t.TempDir()
	f, err := NewFiles([]string{dir})
	require.NoError(t, err)
	write(t, filepath.Join(dir, "new", "a.yaml"), "a")
	require.NoError(t, f.Wait(t.Context()))
	write(t, filepath.Join(dir, "new", "a.yaml"), "b")
	require.NoError(t, f.Wait(t.Context()))
	require.NoError(t, f.Close())
	assert.Error(t, f.Wait(t.Context()))
}

func TestFilesMustExist(t *testing.T) {
	_, err := NewFiles([]string{filepath.Join(t.TempDir(), "none", "a.yaml")})
	assert.ErrorIs(t, err, os.ErrNotExist)
}
