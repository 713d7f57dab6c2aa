package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/krew/pkg/constants"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"
)

// The plugin's name with krew, and its program.
const (
	pluginName = "overrule"
	program    = "kubectl-overrule"
)

const (
	shortDescription = "Show effective gateway policies, and judge changes"
	longDescription  = `What Gateway API policies come to on each path from a gateway to a route's
rule, why it is so, and what a change would do: on the cluster of the current
kubeconfig, or on manifests alone. It does not need the admission server.
`
)

// plugin is what to make of the plugin's binaries.
type plugin struct {
	version, out, url string
	with              []string
}

// archive is a file that somebody downloads for a platform.
type archive struct {
	binary
	name, sum string
}

// write writes an archive for each binary, their sums as sha256sum reads them,
// and the manifest if there is an address, and tells what it wrote.
func (p plugin) write(told io.Writer, binaries []binary) error {
	if err := p.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(p.out, 0o755); err != nil { //nolint:gosec // it is to be read by everybody
		return fmt.Errorf("make the folder for archives: %w", err)
	}
	files := map[string][]byte{}
	var names []string
	add := func(name string, content []byte) {
		names = append(names, name)
		files[name] = content
	}
	var archives []archive
	var sums strings.Builder
	for _, b := range binaries {
		content, err := p.pack(b)
		if err != nil {
			return err
		}
		a := archive{binary: b, name: fmt.Sprintf("%s-%s-%s-%s.tar.gz", program, p.version, b.os, b.arch), sum: sum(content)}
		archives = append(archives, a)
		add(a.name, content)
		fmt.Fprintf(&sums, "%s  %s\n", a.sum, a.name)
	}
	add("SHA256SUMS", []byte(sums.String()))
	if p.url != "" {
		manifest, err := yaml.Marshal(p.manifest(archives))
		if err != nil {
			return fmt.Errorf("write the manifest for krew: %w", err)
		}
		add(pluginName+constants.ManifestExtension, manifest)
	}
	for _, name := range names {
		path := filepath.Join(p.out, name)
		if err := os.WriteFile(path, files[name], 0o644); err != nil { //nolint:gosec // it is to be read by everybody
			return fmt.Errorf("write what people download: %w", err)
		}
		if _, err := fmt.Fprintln(told, path); err != nil {
			return err
		}
	}
	return nil
}

// check tells what krew would refuse, before anything is written.
func (p plugin) check() error {
	if p.url == "" {
		return nil
	}
	at, err := url.Parse(p.url)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
		return fmt.Errorf("--url=%s is no address to download from: give https://HOST/FOLDER", p.url)
	}
	if !semver.IsValid(p.version) || semver.Canonical(p.version) != strings.TrimSuffix(p.version, semver.Build(p.version)) {
		return fmt.Errorf("--version=%s: krew takes versions such as v1.2.3 alone: tag the commit, or leave --url out for archives without a manifest", p.version)
	}
	return nil
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// program is the file of the binary in its archive.
func (b binary) program() string {
	if b.os == "windows" {
		return program + ".exe"
	}
	return program
}

// pack makes an archive of the binary and what comes with it. The same files
// give the same bytes.
func (p plugin) pack(b binary) ([]byte, error) {
	at, err := b.moment(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	err = addFile(w, b.path, b.program(), 0o755, at)
	for _, path := range p.with {
		err = cmp.Or(err, addFile(w, path, filepath.Base(path), 0o644, at))
	}
	if err = errors.Join(err, w.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("archive for %s/%s: %w", b.os, b.arch, err)
	}
	return out.Bytes(), nil
}

func addFile(w *tar.Writer, path, name string, mode int64, at time.Time) error {
	content, err := os.ReadFile(path) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("read what goes into it: %w", err)
	}
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	return errors.Join(w.WriteHeader(header), writeAll(w, content))
}

// manifest is what krew installs the plugin by.
func (p plugin) manifest(archives []archive) index.Plugin {
	out := index.Plugin{
		TypeMeta:   metav1.TypeMeta{APIVersion: constants.CurrentAPIVersion, Kind: constants.PluginKind},
		ObjectMeta: metav1.ObjectMeta{Name: pluginName},
		Spec:       index.PluginSpec{Version: p.version, ShortDescription: shortDescription, Description: longDescription},
	}
	for _, a := range archives {
		files := []index.FileOperation{{From: a.program(), To: "."}}
		for _, path := range p.with {
			files = append(files, index.FileOperation{From: filepath.Base(path), To: "."})
		}
		out.Spec.Platforms = append(out.Spec.Platforms, index.Platform{
			URI: strings.TrimSuffix(p.url, "/") + "/" + a.name, Sha256: a.sum, Bin: a.program(), Files: files,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"os": a.os, "arch": a.arch}},
		})
	}
	return out
}
