// Package build has the version of the program, its revision, and the versions of
// the libraries that determine its behaviour.
package build

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
)

// version and revision are set by the linker (-X). Without them the build
// information of Go is used.
var version, revision string

// libraries are the modules that determine which API versions are supported.
var libraries = []string{"k8s.io/api", "k8s.io/client-go", "sigs.k8s.io/gateway-api"}

// Unknown is the Version of a build without one, such as that of a test.
const Unknown = "dev"

// Info describes a build. Unknown values are empty.
type Info struct {
	// Version is a tag (v1.2.3), or one with the commits since.
	Version string `json:"version"`
	// Revision is the commit of git, with "-dirty" where files had been changed.
	Revision string `json:"revision,omitempty"`
	Go       string `json:"goVersion"`
	// Platform is an operating system and an architecture: linux/arm64.
	Platform string `json:"platform"`
	// Libraries are the versions of modules by their paths.
	Libraries map[string]string `json:"libraries"`
}

// Read returns the Info of this program.
func Read() Info {
	built, ok := debug.ReadBuildInfo()
	if !ok {
		built = &debug.BuildInfo{}
	}
	return read(built, version, revision)
}

// read prefers the values that the linker set to the build information of Go, which
// has the version of "go install", or the commit of a build in a repository.
func read(built *debug.BuildInfo, version, revision string) Info {
	settings := map[string]string{}
	for _, s := range built.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	if commit != "" && settings["vcs.modified"] == "true" {
		commit += "-dirty"
	}
	module := built.Main.Version
	if module == "(devel)" {
		module = ""
	}
	info := Info{
		Version:  cmp.Or(version, module, Unknown),
		Revision: cmp.Or(revision, commit),
		Go:       runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Libraries: map[string]string{},
	}
	for _, dep := range built.Deps {
		if !slices.Contains(libraries, dep.Path) {
			continue
		}
		info.Libraries[dep.Path] = dep.Version
		if dep.Replace != nil { // a replacement by a directory has no version
			info.Libraries[dep.Path] = cmp.Or(dep.Replace.Version, dep.Replace.Path)
		}
	}
	return info
}

// writeText writes one line for each known value, the name of the program and its
// version first.
func (i Info) writeText(out io.Writer, name string) error {
	lines := [][2]string{{name, i.Version}, {"revision", cmp.Or(i.Revision, "unknown")}, {"go", i.Go}, {"platform", i.Platform}}
	for _, path := range libraries {
		if v, ok := i.Libraries[path]; ok {
			lines = append(lines, [2]string{path, v})
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(out, "%s %s\n", line[0], line[1]); err != nil {
			return fmt.Errorf("write version: %w", err)
		}
	}
	return nil
}
