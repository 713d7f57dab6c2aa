// Package volume mounts files as a kubelet mounts a Secret.
package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Mount replaces all files of a folder at once: each is a link through a link to the
// current version, which one rename replaces. The version before is removed.
func Mount[Content ~string | ~[]byte](t testing.TB, dir string, files map[string]Content) {
	t.Helper()
	next, err := os.MkdirTemp(dir, "..version_") //nolint:usetesting // it has to be beside the link
	require.NoError(t, err)
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(next, name), []byte(content), 0o600))
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // exists from the second time on
	}
	before, _ := os.Readlink(filepath.Join(dir, "..data")) // none at first
	link := filepath.Join(dir, "..data_tmp")
	require.NoError(t, os.Symlink(filepath.Base(next), link))
	require.NoError(t, os.Rename(link, filepath.Join(dir, "..data")))
	if before != "" {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, before)))
	}
}
