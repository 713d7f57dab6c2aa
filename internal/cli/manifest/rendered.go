package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// OriginAnnotation is the annotation in which kustomize writes the file that an object
// was rendered from, with "buildMetadata: [originAnnotations]".
const OriginAnnotation = "config.kubernetes.io/origin"

// helmSource is the start of the comment in which Helm writes the template that an
// object was rendered from.
const helmSource = "# Source: "

// Source returns the file that the object was rendered from, as kustomize's annotation
// or Helm's comment has it: a path relative to the directory of the object's own file.
// ok is false if there is none, or if the file does not exist.
func (o *Object) Source() (file string, ok bool) {
	below := o.sourcePath()
	if below == "" || filepath.IsAbs(below) || o.At.File == "" || o.At.File == Stdin {
		return "", false
	}
	file = filepath.Join(filepath.Dir(o.At.File), filepath.FromSlash(below))
	info, err := os.Stat(file)
	return file, err == nil && info.Mode().IsRegular()
}

func (o *Object) sourcePath() string {
	if text := o.Annotation(OriginAnnotation); text != "" {
		var origin struct{ Path, Repo string }
		if err := yaml.Unmarshal([]byte(text), &origin); err != nil || origin.Repo != "" {
			return ""
		}
		return origin.Path
	}
	if o.origin.text == nil {
		return ""
	}
	for line := range bytes.Lines(o.origin.text.data) {
		switch text := strings.TrimRight(string(line), "\r\n"); {
		case strings.HasPrefix(text, helmSource):
			return strings.TrimPrefix(text, helmSource)
		case strings.TrimSpace(text) != "" && text[0] != '#':
			return "" // the content starts
		}
	}
	return ""
}

// Find returns the object of a set that another one was rendered from: that of the same
// kind and name, else the only one of the kind, since kustomize and Helm change names.
// It returns nil if there is none.
func (s *Set) Find(rendered *Object) *Object {
	var ofKind []*Object
	for _, o := range s.Objects {
		if o.Kind != rendered.Kind {
			continue
		}
		if o.Name == rendered.Name {
			return o
		}
		ofKind = append(ofKind, o)
	}
	if len(ofKind) != 1 {
		return nil
	}
	return ofKind[0]
}
