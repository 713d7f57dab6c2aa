package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MaxSize is the maximum size of a file in bytes, also with its aliases expanded.
const MaxSize = 64 << 20

// Stdin is the path of standard input.
const Stdin = "-"

// Set holds the objects of files, in the order of the files.
type Set struct {
	Objects []*Object
}

// Read reads files, directories recursively, and standard input. In directories it
// reads files that end in .yaml, .yml or .json, in the order of their names, except
// hidden ones. A path may be a symbolic link. A file that is given twice is read
// once.
//
// The error joins all errors; each has a position or is about a whole path.
func Read(paths []string, stdin io.Reader) (*Set, error) {
	r := reader{stdin: stdin, seen: make(map[string]bool)}
	for _, path := range paths {
		r.readPath(path)
	}
	return &r.set, errors.Join(r.errs...)
}

type reader struct {
	stdin io.Reader
	seen  map[string]bool
	set   Set
	errs  []error
}

func (r *reader) fail(err error) { r.errs = append(r.errs, err) }

// readPath reads the files of a path, and adds ErrEmpty if they have no objects.
func (r *reader) readPath(path string) {
	files, err := listFiles(path)
	if err != nil {
		r.fail(err)
		return
	}
	found, failed, alreadyRead := len(r.set.Objects), len(r.errs), false
	for _, file := range files {
		id := canonicalPath(file)
		alreadyRead = alreadyRead || r.seen[id]
		if !r.seen[id] {
			r.seen[id] = true
			r.readFile(file)
		}
	}
	if len(r.set.Objects) == found && len(r.errs) == failed && !alreadyRead {
		r.fail(fmt.Errorf("%s: %w; specify a file, or a directory with .yaml, .yml or .json files", Position{File: path}, ErrEmpty))
	}
}

func canonicalPath(file string) string {
	if file == Stdin {
		return file
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	if absolute, err := filepath.Abs(file); err == nil {
		return absolute
	}
	return file
}

// listFiles returns the files of a path, sorted.
func listFiles(path string) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w; check the path", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("stat %s: %w", path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := walkDir(path + string(filepath.Separator)) // with it, a link at the root is followed
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	return files, nil
}

// walkDir returns the manifests below a directory, sorted.
func walkDir(root string) (files []string, err error) {
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file != root && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
		case !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)):
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

func (r *reader) readFile(file string) {
	data, err := r.load(file)
	if err != nil {
		r.fail(err)
		return
	}
	documents, errs := split(file, data)
	r.errs = append(r.errs, errs...)
	for _, d := range documents {
		content, err := d.decode()
		if err != nil {
			r.fail(err)
			continue
		}
		r.addObject(d.position, content, origin{text: &documentText{data: d.data, startLine: d.startLine}})
	}
}

// load returns the content of a file.
func (r *reader) load(file string) ([]byte, error) {
	in := r.stdin
	if file != Stdin {
		f, err := os.Open(file) //nolint:gosec // the user names the files to read
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", file, err)
		}
		defer func() { _ = f.Close() }() // the file was only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", Position{File: file}, err)
	}
	if len(data) > MaxSize {
		return nil, Position{File: file}.errorf("%w: exceeds %d MiB; split the file", ErrTooLarge, MaxSize>>20)
	}
	return data, nil
}
