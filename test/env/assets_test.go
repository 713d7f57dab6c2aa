package env

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAssetsFromVariable(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	built := filepath.Join(root, "bin", "controlplane")
	require.NoError(t, os.MkdirAll(built, 0o750))
	for _, folder := range []string{built, elsewhere} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "etcd"), nil, 0o600))
	}

	t.Setenv(assetsVariable, "")
	found, err := findAssets(root, "etcd")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(built, "etcd"), found.path("etcd"))

	t.Setenv(assetsVariable, elsewhere)
	found, err = findAssets(root, "etcd")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(elsewhere, "etcd"), found.path("etcd"))
}

func TestMissingAssets(t *testing.T) {
	root := t.TempDir()
	t.Setenv(assetsVariable, "")
	folder := filepath.Join(root, "bin", "controlplane")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "etcd"), 0o750))

	_, err := findAssets(root, "etcd", "kubectl")

	require.ErrorIs(t, err, ErrNoControlPlane)
	assert.ErrorContains(t, err, `etcd is not in `+folder+`; run "make controlplane", or let KUBEBUILDER_ASSETS name a folder that has etcd, kubectl`)
}

func TestModuleFolders(t *testing.T) {
	folders, err := crdFolders(t.Context())
	require.NoError(t, err)
	for _, folder := range folders {
		assert.DirExists(t, folder)
	}

	_, err = ModuleFolder(t.Context(), "example.com/nothing")
	assert.ErrorContains(t, err, "find the folder of module example.com/nothing: ")
}
