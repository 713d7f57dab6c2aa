package main

import (
	"archive/tar"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// builtServer returns a folder for makeImage.
func builtServer(t *testing.T) string {
	t.Helper()
	return built(t, "overrule", "linux/amd64", "linux/arm64")
}

// makeImage runs make image for linux/amd64 and linux/arm64, and returns the
// index that it writes.
func makeImage(t *testing.T, release, version string) v1.ImageIndex {
	t.Helper()
	out, err := runMake(t, "image", "RELEASE="+release, "VERSION="+version, "REVISION=abc", "SOURCE_DATE_EPOCH=1700000000", "PLATFORMS=linux/amd64 linux/arm64")
	require.NoError(t, err, out)
	index := readLayout(t, filepath.Join(release, "image"), version)
	digest, err := index.Digest()
	require.NoError(t, err)
	assert.Contains(t, out, filepath.Join(release, "image")+" "+digest.String()+"\n")
	return index
}

// readLayout returns the only index of a layout.
func readLayout(t *testing.T, dir, version string) v1.ImageIndex {
	t.Helper()
	top, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	manifest, err := top.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	assert.Equal(t, version, manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	return index
}

func imageFor(t *testing.T, index v1.ImageIndex, platform string) v1.Image {
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
	require.Failf(t, "no image", "platform %s of %v", platform, manifest.Manifests)
	return nil
}

// onlyFile returns the only file of the only layer of an image.
func onlyFile(t *testing.T, image v1.Image) (*tar.Header, string) {
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
	return header, string(content)
}

func TestMakeImageWritesAnImageForEachPlatform(t *testing.T) {
	index := makeImage(t, builtServer(t), "v1.2.3")
	require.NoError(t, validate.Index(index), "digests and sizes match")

	labels := map[string]string{
		"org.opencontainers.image.title":       "overrule",
		"org.opencontainers.image.description": "Admission server that evaluates writes by the effective policies they change",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     "v1.2.3",
		"org.opencontainers.image.revision":    "abc",
	}
	at := time.Unix(1700000000, 0).UTC()
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	assert.Equal(t, types.OCIImageIndex, manifest.MediaType)
	assert.Equal(t, labels, manifest.Annotations)
	assert.Len(t, manifest.Manifests, 2)
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		image := imageFor(t, index, platform)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, platform, config.OS+"/"+config.Architecture)
		assert.Equal(t, at, config.Created.UTC())
		assert.Equal(t, v1.Config{
			User: "65532:65532", Entrypoint: []string{"/overrule"}, Labels: labels,
			ExposedPorts: map[string]struct{}{"9443/tcp": {}, "9444/tcp": {}, "8080/tcp": {}, "8081/tcp": {}},
		}, config.Config)
		header, content := onlyFile(t, image)
		assert.Equal(t, "overrule", header.Name)
		assert.Equal(t, [3]int64{0o555, 0, 0}, [3]int64{header.Mode, int64(header.Uid), int64(header.Gid)})
		assert.Equal(t, at, header.ModTime.UTC())
		assert.Equal(t, "overrule for "+platform, content)
	}
}

func TestTheSameInputResultsInTheSameDigest(t *testing.T) {
	digest := func(release, version string) string {
		d, err := makeImage(t, release, version).Digest()
		require.NoError(t, err)
		return d.String()
	}
	release := builtServer(t)
	first := digest(release, "v1.2.3")
	assert.NotEqual(t, first, digest(release, "v1.2.4"), "replaces the layout of the first")
	assert.Equal(t, first, digest(builtServer(t), "v1.2.3"), "built in another folder, later")
}

// The two builds of the image agree on its configuration.
func TestTheDockerfileHasTheSameConfiguration(t *testing.T) {
	image, err := newImage(v1.Platform{OS: "linux", Architecture: "amd64"}, "main.go", labels("${VERSION}", "${REVISION}"), time.Unix(0, 0))
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	final := string(dockerfile[strings.LastIndex(string(dockerfile), "\nFROM "):])
	assert.Contains(t, final, "\nUSER "+config.Config.User+"\n")
	assert.Contains(t, final, "\nENTRYPOINT [\""+config.Config.Entrypoint[0]+"\"]\n")
	for label, value := range config.Config.Labels {
		assert.Contains(t, final, label+`="`+value+`"`)
	}
	exposed := strings.Fields(strings.SplitN(strings.SplitN(final, "\nEXPOSE ", 2)[1], "\n", 2)[0])
	assert.Len(t, config.Config.ExposedPorts, len(exposed))
	for _, port := range exposed {
		assert.Contains(t, config.Config.ExposedPorts, port+"/tcp")
	}
}

func TestMakePushPushesTheImage(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	release := builtServer(t)
	index := makeImage(t, release, "v1.2.3")
	repository := strings.TrimPrefix(server.URL, "http://") + "/overrule"
	out, err := runMake(t, "push", "RELEASE="+release, "IMAGE="+repository+":v1.2.3")
	require.NoError(t, err, out)
	digest, err := index.Digest()
	require.NoError(t, err)
	assert.Contains(t, out, repository+"@"+digest.String()+"\n")

	tag, err := name.NewTag(repository + ":v1.2.3")
	require.NoError(t, err)
	pulled, err := remote.Index(tag)
	require.NoError(t, err)
	require.NoError(t, validate.Index(pulled))
	got, err := pulled.Digest()
	require.NoError(t, err)
	assert.Equal(t, digest, got)
}

func TestMakePushRejectsAnIncompleteReference(t *testing.T) {
	for _, image := range []string{"", "overrule", "overrule:v1.2.3", "localhost:5000/overrule"} {
		out, err := runMake(t, "push", "VERSION=v1.2.3", "IMAGE="+image)
		require.Error(t, err, image)
		assert.Contains(t, out, "push: IMAGE must be REGISTRY/NAME:TAG: make push IMAGE=REGISTRY/overrule:v1.2.3\n", image)
	}
}

func TestMakePushReportsWhatFailed(t *testing.T) {
	for name, image := range map[string]string{
		"no layout":    "localhost/overrule:v1.2.3",
		"invalid name": "localhost/OVERRULE:v1.2.3",
	} {
		out, err := runMake(t, "push", "RELEASE="+t.TempDir(), "IMAGE="+image)
		require.Error(t, err, name)
		assert.Contains(t, out, "Error: ", name)
	}
}

func TestInvalidArgumentsAreRejected(t *testing.T) {
	file := filepath.Join(t.TempDir(), "overrule")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	blobs := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(blobs, "blobs"), nil, 0o600))
	const used = "image"
	for name, c := range map[string]struct {
		layout, binary, epoch, says string
	}{
		"no platform":            {used, file, "", `invalid argument "` + file + `": must be OS/ARCH=BINARY`},
		"half a platform":        {used, "linux=" + file, "", `must be OS/ARCH=BINARY`},
		"no file":                {used, "linux/amd64=", "", `must be OS/ARCH=BINARY`},
		"a file that is missing": {used, "linux/amd64=" + file + "2", "", "image for linux/amd64: read the binary: open " + file + "2"},
		"a date":                 {used, "linux/amd64=" + file, "today", `invalid SOURCE_DATE_EPOCH "today": must be a number of seconds since 1970`},
		"a date before 1970":     {used, "linux/amd64=" + file, "-1", "image for linux/amd64: pack " + file + ": "},
		"a layout in a file":     {file, "linux/amd64=" + file, "", "create the layout: "},
		"a file in the layout":   {blobs, "linux/amd64=" + file, "", "write the layout: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
			dir := c.layout
			if dir == used {
				dir = filepath.Join(t.TempDir(), "image")
			}
			require.ErrorContains(t, run([]string{dir, "v1.2.3", c.binary}, io.Discard), c.says)
			if c.layout == used {
				assert.NoDirExists(t, dir)
			}
		})
	}
	require.EqualError(t, run([]string{"image", "v1.2.3"}, io.Discard), usage)
}

func TestTheTimestampIsNeverTheCurrentTime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	t.Setenv("REVISION", "")
	dir := filepath.Join(t.TempDir(), "image")
	require.NoError(t, run([]string{dir, "dev", "linux/amd64=main.go"}, io.Discard))
	config, err := imageFor(t, readLayout(t, dir, "dev"), "linux/amd64").ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, time.Unix(0, 0).UTC(), config.Created.UTC())
	assert.NotContains(t, config.Config.Labels, "org.opencontainers.image.revision")
}
