package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// labels returns the labels of each image and the annotations of their index.
// The Dockerfile has the same.
func labels(version, revision string) map[string]string {
	out := map[string]string{
		"org.opencontainers.image.title":       "overrule",
		"org.opencontainers.image.description": "Admission server that evaluates writes by the effective policies they change",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     version,
	}
	if revision != "" {
		out["org.opencontainers.image.revision"] = revision
	}
	return out
}

// newImage returns an image that contains the binary and nothing else. Its
// configuration is that of the Dockerfile.
func newImage(platform v1.Platform, binary string, labels map[string]string, created time.Time) (v1.Image, error) {
	layer, err := newLayer(binary, created)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: v1.Time{Time: created},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:         "65532:65532",
			Entrypoint:   []string{"/overrule"},
			ExposedPorts: map[string]struct{}{"9443/tcp": {}, "9444/tcp": {}, "8080/tcp": {}, "8081/tcp": {}},
			Labels:       labels,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set the configuration: %w", err)
	}
	return mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "make image"},
	})
}

// newLayer returns a layer with the binary as /overrule, owned by root and not
// writable.
func newLayer(binary string, created time.Time) (v1.Layer, error) {
	content, err := os.ReadFile(binary) //nolint:gosec // the caller names it
	if err != nil {
		return nil, fmt.Errorf("read the binary: %w", err)
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	err = w.WriteHeader(&tar.Header{
		Name: "overrule", Mode: 0o555, Size: int64(len(content)), ModTime: created, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
	})
	if err == nil {
		_, err = w.Write(content)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("pack %s: %w", binary, err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}
