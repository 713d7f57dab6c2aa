package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/note"
	"overrule.dev/overrule/internal/snapshot"
)

// operation is one step of a JSON patch (RFC 6902).
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// part is what mutating looks at in an object.
type mutableParts struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`

	spec []byte // as it stands
}

// partOf reads a part. The object was read before, so that only its metadata
// needs to be decoded again.
func mutablePartsOf(object []byte) (mutableParts, error) {
	p := mutableParts{spec: jsonField(object, "spec")}
	metadata := jsonField(object, "metadata")
	if metadata == nil {
		return p, nil
	}
	return p, json.Unmarshal(metadata, &p)
}

// annotate returns the patch that puts our annotation on the object of a
// request. Where neither spec nor labels changed, what was there stays, so that an
// unchanged apply is a no-op; unless the writer makes something else of it: then it
// is computed anew. Nobody is trusted to say it right, whoever they are, and what a
// refresh brings stands because it is what comes of that.
func (s *Server) annotationPatch(v *snapshot.View, r *admissionv1.AdmissionRequest, c guard.Change, b *effective.Budget) ([]patchOperation, error) {
	name := note.Name(c.After)
	if name == "" {
		return nil, nil
	}
	now, err := mutablePartsOf(r.Object.Raw)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of object: %w", err)
	}
	var was mutableParts
	if c.Operation == guard.Update {
		if was, err = mutablePartsOf(r.OldObject.Raw); err != nil {
			return nil, fmt.Errorf("read the metadata of oldObject: %w", err)
		}
	}
	same := c.Operation == guard.Update && bytes.Equal(now.spec, was.spec) && maps.Equal(now.Labels, was.Labels)
	if same && now.sameAnnotation(name, was) {
		return nil, nil
	}
	text, err := note.Text(s.Guard.Engine, v.With(snapshot.Put(c.After)), c.After, b, nil)
	switch {
	case err == nil:
		return setAnnotation(name, now, text), nil
	case same: // what was there is older, and was ours
		return setAnnotation(name, now, was.Annotations[name]), nil
	default:
		return nil, err
	}
}

// sameAt reports whether two objects have the same annotation of a name.
func (p mutableParts) sameAnnotation(name string, o mutableParts) bool {
	text, there := p.Annotations[name]
	old, had := o.Annotations[name]
	return text == old && there == had
}

// pointer makes a name a part of a JSON pointer (RFC 6901).
var jsonPointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// set gives the annotation a value, or takes it off if that is "".
func setAnnotation(name string, now mutableParts, text string) []patchOperation {
	old, there := now.Annotations[name]
	path := "/metadata/annotations/" + jsonPointerEscaper.Replace(name)
	switch {
	case text == "" && there:
		return []patchOperation{{Op: "remove", Path: path}}
	case text == old:
		return nil
	case now.Annotations == nil:
		return []patchOperation{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{name: text}}}
	default:
		return []patchOperation{{Op: "add", Path: path, Value: text}}
	}
}
