package commands

import (
	"os"
	"path/filepath"

	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/report"
)

// reportPaths converts the paths of files to those of reports.
type reportPaths struct {
	root string // of all files; "" for the root of the repository of each
	// sources are the files that objects were rendered from, as far as they can be read.
	sources map[string]*manifest.Set
}

// location returns the location of a field of a manifest for a report. For an object that
// kustomize or Helm rendered, it is in the file that the object was rendered from.
func (p *reportPaths) location(o *manifest.Object, field string) report.Location {
	at := o.Locate(field)
	if file, ok := o.Source(); ok {
		at = manifest.Location{File: file}
		if source := p.source(file).Find(o); source != nil {
			at = source.Locate(field)
		}
	}
	at.File = p.path(at.File)
	return report.Location(at)
}

// source returns the objects of a file that others were rendered from. A template of Helm
// often has none: it is no YAML.
func (p *reportPaths) source(file string) *manifest.Set {
	if set, known := p.sources[file]; known {
		return set
	}
	set, err := manifest.Read([]string{file}, nil)
	if err != nil {
		set = &manifest.Set{}
	}
	p.sources[file] = set
	return set
}

// path returns the path of a file relative to its root, with slashes, or the absolute
// path if it has no root.
func (p *reportPaths) path(file string) string {
	if file == manifest.Stdin || file == "" {
		return file
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return filepath.ToSlash(file)
	}
	root := p.root
	if root == "" {
		root = repository(filepath.Dir(absolute))
	}
	if root, err = filepath.Abs(root); err == nil {
		if below, err := filepath.Rel(root, absolute); err == nil && filepath.IsLocal(below) {
			return filepath.ToSlash(below)
		}
	}
	return filepath.ToSlash(absolute)
}

// repository returns the root of the Git repository or worktree of a directory; the
// working directory for one that is in none.
func repository(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "."
		}
		dir = parent
	}
}
