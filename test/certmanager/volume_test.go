package certmanager

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVolumeSwapsAtomically(t *testing.T) {
	v := Volume(t.TempDir())
	require.NoError(t, v.Write(map[string][]byte{"tls.crt": []byte("a"), "tls.key": []byte("b")}))
	held, err := os.Open(filepath.Join(string(v), "tls.crt"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = held.Close() })
	first, err := filepath.EvalSymlinks(filepath.Join(string(v), current))
	require.NoError(t, err)

	require.NoError(t, v.Write(map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("d"), "ca.crt": []byte("e")}))

	for name, want := range map[string]string{"tls.crt": "c", "tls.key": "d", "ca.crt": "e"} {
		got, err := os.ReadFile(filepath.Join(string(v), name))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), name)
		link, err := os.Readlink(filepath.Join(string(v), name))
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(current, name), link)
	}
	assert.NoDirExists(t, first, "the previous version is removed")
	assert.NoFileExists(t, filepath.Join(string(v), staged))
}

func TestVolumeWriteErrors(t *testing.T) {
	gone := Volume(filepath.Join(t.TempDir(), "gone"))
	err := gone.Write(map[string][]byte{"tls.crt": nil})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "mount a secret at "+string(gone))
}
