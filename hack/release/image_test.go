package main

import (
	"archive/tar"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// imageOf makes an image of the binaries, and reads it back.
func imageOf(t *testing.T, version string, binaries ...string) (dir string, index v1.ImageIndex) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "image")
	said, err := release(t, append([]string{"image", "--version", version, "--out", dir}, binaries...)...)
	require.NoError(t, err)
	index, err = readLayout(dir)
	require.NoError(t, err)
	digest, err := index.Digest()
	require.NoError(t, err)
	assert.Equal(t, dir+" "+digest.String()+"\n", said)
	return dir, index
}

func platformOf(t *testing.T, index v1.ImageIndex, platform string) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	for _, m := range manifest.Manifests {
		if m.Platform.String() == platform {
			image, err := index.Image(m.Digest)
			require.NoError(t, err)
			return image
		}
	}
	require.Failf(t, "no such image", "%s of %v", platform, manifest.Manifests)
	return nil
}

func TestTheImageIsThereForEachPlatform(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	binaries := built(t, "linux/amd64", "linux/arm64")
	dir, index := imageOf(t, "v1.2.3", binaries...)
	require.NoError(t, validate.Index(index), "what its descriptors say is so")

	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	assert.Equal(t, types.OCIImageIndex, manifest.MediaType)
	assert.Len(t, manifest.Manifests, 2)
	assert.Equal(t, "v1.2.3", manifest.Annotations["org.opencontainers.image.version"])
	for _, arg := range binaries {
		platform, path, _ := strings.Cut(arg, "=")
		image := platformOf(t, index, platform)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, platform, config.OS+"/"+config.Architecture)
		assert.Equal(t, time.Unix(1700000000, 0).UTC(), config.Created.UTC())
		assert.Equal(t, "65532:65532", config.Config.User)
		assert.Equal(t, []string{"/overrule"}, config.Config.Entrypoint)
		assert.Equal(t, map[string]string{
			"org.opencontainers.image.title":       "overrule",
			"org.opencontainers.image.description": "Admission server that judges writes by the effective policies they change",
			"org.opencontainers.image.version":     "v1.2.3",
		}, config.Config.Labels)
		header, content := onlyFile(t, image)
		assert.Equal(t, "overrule", header.Name)
		assert.Equal(t, [3]int64{0o555, 0, 0}, [3]int64{header.Mode, int64(header.Uid), int64(header.Gid)})
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, content, "the binary as it was built")
	}
	top, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	topManifest, err := top.IndexManifest()
	require.NoError(t, err)
	require.Len(t, topManifest.Manifests, 1)
	assert.Equal(t, "v1.2.3", topManifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
}

// onlyFile is the one file of the one layer of an image.
func onlyFile(t *testing.T, image v1.Image) (*tar.Header, []byte) {
	t.Helper()
	layers, err := image.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	r, err := layers[0].Uncompressed()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	files := tar.NewReader(r)
	header, err := files.Next()
	require.NoError(t, err)
	content, err := io.ReadAll(files)
	require.NoError(t, err)
	_, err = files.Next()
	require.ErrorIs(t, err, io.EOF)
	return header, content
}

func TestTheFileInTheImageRuns(t *testing.T) {
	_, index := imageOf(t, "v1.2.3", built(t, here())...)
	_, content := onlyFile(t, platformOf(t, index, here()))
	path := filepath.Join(t.TempDir(), "overrule")
	require.NoError(t, os.WriteFile(path, content, 0o700))
	said, err := exec.CommandContext(t.Context(), path).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "it runs\n", string(said))
}

func TestTheSameInputGivesTheSameImage(t *testing.T) {
	digest := func(version string, binaries []string) string {
		_, index := imageOf(t, version, binaries...)
		d, err := index.Digest()
		require.NoError(t, err)
		return d.String()
	}
	first := digest("v1.2.3", built(t, "linux/amd64", "linux/arm64"))
	assert.Equal(t, first, digest("v1.2.3", built(t, "linux/amd64", "linux/arm64")), "built elsewhere, later")
	assert.NotEqual(t, first, digest("v1.2.4", built(t, "linux/amd64", "linux/arm64")))
}

// What the two ways to an image say of it is the same.
func TestTheDockerfileMakesTheSameImage(t *testing.T) {
	_, index := imageOf(t, "v1.2.3", built(t, here())...)
	config, err := platformOf(t, index, here()).ConfigFile()
	require.NoError(t, err)
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	final := string(dockerfile[strings.LastIndex(string(dockerfile), "\nFROM "):])
	assert.Contains(t, final, "\nUSER "+config.Config.User+"\n")
	assert.Contains(t, final, "\nENTRYPOINT [\""+config.Config.Entrypoint[0]+"\"]\n")
	for label, value := range config.Config.Labels {
		if label == "org.opencontainers.image.version" {
			value = "${VERSION}"
		}
		assert.Contains(t, final, label+`="`+value+`"`)
	}
	assert.Contains(t, final, `org.opencontainers.image.revision="${REVISION}"`)
	exposed := strings.Fields(strings.SplitN(strings.SplitN(final, "\nEXPOSE ", 2)[1], "\n", 2)[0])
	assert.Len(t, config.Config.ExposedPorts, len(exposed))
	for _, port := range exposed {
		assert.Contains(t, config.Config.ExposedPorts, port+"/tcp")
	}
}

func TestALayoutIsMadeAnewAndNothingElseIs(t *testing.T) {
	binaries := built(t, here())
	dir, _ := imageOf(t, "v1.2.3", binaries...)
	_, err := release(t, append([]string{"image", "--version", "v1.2.4", "--out", dir}, binaries...)...)
	require.NoError(t, err)
	again, err := readLayout(dir)
	require.NoError(t, err)
	manifest, err := again.IndexManifest()
	require.NoError(t, err)
	assert.Equal(t, "v1.2.4", manifest.Annotations["org.opencontainers.image.version"])

	somebodys := t.TempDir()
	file := filepath.Join(somebodys, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, out := range []string{somebodys, file} {
		_, err = release(t, append([]string{"image", "--out", out}, binaries...)...)
		require.ErrorContains(t, err, out+" is no image layout that may be replaced: name another folder: ")
		assert.FileExists(t, file)
	}
}

func TestABinaryThatMayNeedLibrariesIsRefused(t *testing.T) {
	_, err := buildIndex([]binary{{os: "linux", arch: "amd64", path: "bin/overrule", built: settings("CGO_ENABLED", "1").built}}, "v1.2.3", "")
	require.EqualError(t, err, "image for linux/amd64: bin/overrule may need libraries that are not in the image: build it with CGO_ENABLED=0")
	gone := binary{os: "linux", arch: "amd64", path: filepath.Join(t.TempDir(), "gone"), built: settings("CGO_ENABLED", "0").built}
	_, err = buildIndex([]binary{gone}, "v1.2.3", "")
	require.ErrorContains(t, err, "image for linux/amd64: read the binary: open ")
	_, err = buildIndex([]binary{gone}, "v1.2.3", "soon")
	require.ErrorContains(t, err, "image for linux/amd64: SOURCE_DATE_EPOCH=soon is no number of seconds")
}

func TestWhatIsPushedIsWhatIsPulled(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	dir, index := imageOf(t, "v1.2.3", built(t, "linux/amd64", "linux/arm64")...)
	reference := strings.TrimPrefix(server.URL, "http://") + "/overrule:v1.2.3"
	said, err := release(t, "push", dir, reference)
	require.NoError(t, err)
	digest, err := index.Digest()
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSuffix(reference, ":v1.2.3")+"@"+digest.String()+"\n", said)

	for _, from := range []string{reference, strings.TrimSpace(said)} {
		at, err := name.ParseReference(from)
		require.NoError(t, err)
		pulled, err := remote.Index(at)
		require.NoError(t, err)
		require.NoError(t, validate.Index(pulled), from)
		for _, arch := range []string{"amd64", "arm64"} {
			image, err := remote.Image(at, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
			require.NoError(t, err)
			config, err := image.ConfigFile()
			require.NoError(t, err)
			assert.Equal(t, arch, config.Architecture)
		}
	}
}

func TestWhyNothingWasPushed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir, _ := imageOf(t, "v1.2.3", built(t, here())...)
	none := filepath.Join(t.TempDir(), "image")
	_, err := layout.Write(none, empty.Index)
	require.NoError(t, err)
	for label, c := range map[string]struct {
		dir, reference, says string
	}{
		"no tag":          {dir, host + "/overrule", `/overrule" names no image: give REGISTRY/NAME:TAG: `},
		"no layout":       {t.TempDir(), host + "/overrule:v1", "(make image writes it): "},
		"an empty layout": {none, host + "/overrule:v1", "it holds 0 manifests and not one index"},
		"a registry's no": {dir, host + "/overrule:v1", "push " + host + "/overrule:v1: "},
	} {
		t.Run(label, func(t *testing.T) {
			_, err := push(t.Context(), c.dir, c.reference)
			assert.ErrorContains(t, err, c.says)
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = push(ended, dir, host+"/overrule:v1")
	assert.ErrorIs(t, err, context.Canceled)
}
