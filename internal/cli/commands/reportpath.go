package commands

import (
	"os"
	"path/filepath"

	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/report"
)

// reportPaths converts the paths of files to those of reports.
type reportPaths struct {
	root  string            // of all files; "" for the root of the repository of each
	roots map[string]string // by directory
}

// location returns the location of a field of a manifest for a report.
func (p *reportPaths) location(o *manifest.Object, field string) report.Location {
	at := o.Locate(field)
	return report.Location{File: p.path(at.File), Line: at.Line, Column: at.Column, EndColumn: at.EndColumn}
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
		root = p.repository(filepath.Dir(absolute))
	}
	if below, ok := relative(root, absolute); ok {
		return filepath.ToSlash(below)
	}
	return filepath.ToSlash(absolute)
}

// relative returns the path of a file below a directory; ok is false if it is elsewhere.
func relative(root, file string) (below string, ok bool) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", false
	}
	below, err = filepath.Rel(root, file)
	return below, err == nil && filepath.IsLocal(below)
}

// repository returns the root of the Git repository or worktree of a directory; the
// working directory for one that is in none.
func (p *reportPaths) repository(dir string) string {
	if root, known := p.roots[dir]; known {
		return root
	}
	root := "."
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		root = dir
	} else if parent := filepath.Dir(dir); parent != dir {
		root = p.repository(parent)
	}
	if p.roots == nil {
		p.roots = make(map[string]string)
	}
	p.roots[dir] = root
	return root
}
