package env

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAssetsFromVariable(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "etcd"), nil, 0o600))
	t.Setenv(assetsVariable, folder)
	found, err := findAssets(t.Context(), "etcd")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(folder, "etcd"), found.path("etcd"))
}

func TestMissingAssets(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(assetsVariable, folder)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "etcd"), 0o750))

	_, err := findAssets(t.Context(), "etcd", "kubectl")

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
