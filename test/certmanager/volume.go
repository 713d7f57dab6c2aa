package certmanager

import (
	"fmt"
	"os"
	"path/filepath"
)

// The names of a projected volume in a pod: files are links through a link to the
// current folder, which is replaced by one rename, so that a reader sees all
// files of one version of the Secret.
const (
	current = "..data"
	staged  = "..data_tmp"
)

// Volume is a folder in which a Secret is mounted, as the kubelet does it.
type Volume string

// Write mounts a new version of the Secret.
func (v Volume) Write(data map[string][]byte) error {
	if err := v.swap(data); err != nil {
		return fmt.Errorf("mount a secret at %s: %w", string(v), err)
	}
	return nil
}

func (v Volume) swap(data map[string][]byte) error {
	version, err := os.MkdirTemp(string(v), "..version_")
	if err != nil {
		return err
	}
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(version, name), content, 0o600); err != nil {
			return err
		}
	}
	old, err := os.Readlink(v.path(current))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(filepath.Base(version), v.path(staged)); err != nil {
		return err
	}
	if err := os.Rename(v.path(staged), v.path(current)); err != nil {
		return err
	}
	if err := v.link(data); err != nil || old == "" {
		return err
	}
	return os.RemoveAll(v.path(old))
}

// link creates the link of each file. Existing ones already point to the new
// version.
func (v Volume) link(data map[string][]byte) error {
	for name := range data {
		err := os.Symlink(filepath.Join(current, name), v.path(name))
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

func (v Volume) path(name string) string { return filepath.Join(string(v), name) }
