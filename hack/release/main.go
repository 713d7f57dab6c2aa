// Command release writes the server's image as an OCI layout: for each platform
// one static binary FROM scratch, all under one index. The same arguments and
// binaries result in the same bytes. It is a separate module, so that the server
// and the plugin do not depend on its libraries.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const usage = `usage: release LAYOUT VERSION OS/ARCH=BINARY [OS/ARCH=BINARY]...
REVISION is the commit for the labels. SOURCE_DATE_EPOCH is the timestamp, in seconds since 1970 (default 0)`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run writes the layout that args name, and its path and digest to out.
func run(args []string, out io.Writer) error {
	if len(args) < 3 {
		return errors.New(usage)
	}
	dir, version := args[0], args[1]
	seconds, err := epoch(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	index, err := newIndex(args[2:], labels(version, os.Getenv("REVISION")), time.Unix(seconds, 0).UTC())
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("create the layout: %w", err)
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})
	if err := path.AppendIndex(index, name); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	_, err = fmt.Fprintln(out, dir, digest)
	return err
}

// epoch parses SOURCE_DATE_EPOCH. The default is never the current time, so that
// the digest does not depend on it.
func epoch(value string) (int64, error) {
	if value == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid SOURCE_DATE_EPOCH %q: must be a number of seconds since 1970", value)
	}
	return seconds, nil
}

// newIndex returns an index of one image for each OS/ARCH=BINARY.
func newIndex(binaries []string, labels map[string]string, created time.Time) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arg := range binaries {
		platform, binary, _ := strings.Cut(arg, "=")
		goos, arch, _ := strings.Cut(platform, "/")
		if arch == "" || binary == "" {
			return nil, fmt.Errorf("invalid argument %q: must be OS/ARCH=BINARY", arg)
		}
		image, err := newImage(v1.Platform{OS: goos, Architecture: arch}, binary, labels, created)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: goos, Architecture: arch}},
		})
	}
	return mutate.Annotations(index, labels).(v1.ImageIndex), nil
}
