package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What the Dockerfile says, too.
const (
	title       = "overrule"
	description = "Admission server that judges writes by the effective policies they change"
	user        = "65532:65532"
	entrypoint  = "/overrule"
)

var ports = map[string]struct{}{"9443/tcp": {}, "8080/tcp": {}, "8081/tcp": {}}

// buildIndex returns an image for each binary under one name. The same binaries
// and version give the same digest.
func buildIndex(binaries []binary, version, sourceDateEpoch string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		image, err := buildImage(b, version, sourceDateEpoch)
		if err != nil {
			return nil, fmt.Errorf("image for %s/%s: %w", b.os, b.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
	}
	return mutate.Annotations(index, labels(binaries[0], version)).(v1.ImageIndex), nil
}

func labels(b binary, version string) map[string]string {
	out := map[string]string{
		"org.opencontainers.image.title":       title,
		"org.opencontainers.image.description": description,
		"org.opencontainers.image.version":     version,
	}
	if revision := b.revision(); revision != "" {
		out["org.opencontainers.image.revision"] = revision
	}
	return out
}

// buildImage returns an image with that one file in it.
func buildImage(b binary, version, sourceDateEpoch string) (v1.Image, error) {
	if cgo := b.setting("CGO_ENABLED"); cgo != "0" {
		return nil, fmt.Errorf("%s may need libraries that are not in the image: build it with CGO_ENABLED=0", b.path)
	}
	at, err := b.moment(sourceDateEpoch)
	if err != nil {
		return nil, err
	}
	layer, err := binaryLayer(b.path, at)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: b.os, Architecture: b.arch, Created: v1.Time{Time: at},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: user, Entrypoint: []string{entrypoint}, ExposedPorts: ports, Labels: labels(b, version)},
	})
	if err != nil {
		return nil, fmt.Errorf("configure it: %w", err)
	}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "make image"},
	})
	if err != nil {
		return nil, fmt.Errorf("add %s: %w", b.path, err)
	}
	return image, nil
}

// binaryLayer has the file as the entry point, owned by root and never written.
func binaryLayer(path string, at time.Time) (v1.Layer, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the caller names it
	if err != nil {
		return nil, fmt.Errorf("read the binary: %w", err)
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	header := &tar.Header{Name: entrypoint[1:], Mode: 0o555, Size: int64(len(content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if err := errors.Join(w.WriteHeader(header), writeAll(w, content), w.Close()); err != nil {
		return nil, fmt.Errorf("pack %s: %w", path, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("make a layer of %s: %w", path, err)
	}
	return layer, nil
}

func writeAll(w io.Writer, content []byte) error {
	_, err := w.Write(content)
	return err
}

// writeLayout writes the index as the one image of a layout, and returns its
// digest. What was in the folder is gone, if it was a layout.
func writeLayout(dir string, index v1.ImageIndex, version string) (v1.Hash, error) {
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("digest: %w", err)
	}
	if err := makeRoom(dir); err != nil {
		return v1.Hash{}, err
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("make the layout %s: %w", dir, err)
	}
	err = to.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version}))
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write to the layout %s: %w", dir, err)
	}
	return digest, nil
}

// makeRoom removes a layout that is there. Any other folder with something in it
// is somebody's.
func makeRoom(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err == nil {
		_, err = layout.FromPath(dir)
	}
	if err != nil {
		return fmt.Errorf("%s is no image layout that may be replaced: name another folder: %w", dir, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the layout before this one: %w", err)
	}
	return nil
}

// push sends the image of a layout to a registry, and returns what to pull it by
// for good: its name and digest.
func push(ctx context.Context, dir, reference string) (string, error) {
	to, err := name.ParseReference(reference, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("%q names no image: give REGISTRY/NAME:TAG: %w", reference, err)
	}
	index, err := readLayout(dir)
	if err != nil {
		return "", fmt.Errorf("read the image layout %s (make image writes it): %w", dir, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", dir, err)
	}
	if err := remote.WriteIndex(to, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push %s: %w", reference, err)
	}
	return to.Context().Digest(digest.String()).Name(), nil
}

// readLayout returns the one image of a layout.
func readLayout(dir string) (v1.ImageIndex, error) {
	from, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := from.IndexManifest()
	if err != nil {
		return nil, err
	}
	if n := len(manifest.Manifests); n != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, fmt.Errorf("it holds %d manifests and not one index", n)
	}
	return from.ImageIndex(manifest.Manifests[0].Digest)
}
