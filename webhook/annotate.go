package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/controllers/annotations"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// part is what mutating looks at in an object.
type part struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`

	spec []byte // as it stands
}

// partOf reads a part. The object was read before, so that only its metadata
// needs to be decoded again.
func partOf(object []byte) (part, error) {
	p := part{spec: member(object, "spec")}
	metadata := member(object, "metadata")
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
func (s *Server) annotate(v *snapshot.View, r *admissionv1.AdmissionRequest, c guard.Change, b *effective.Budget) ([]operation, error) {
	name := annotations.Name(c.After)
	if name == "" {
		return nil, nil
	}
	now, err := partOf(r.Object.Raw)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of object: %w", err)
	}
	var was part
	if c.Operation == guard.Update {
		if was, err = partOf(r.OldObject.Raw); err != nil {
			return nil, fmt.Errorf("read the metadata of oldObject: %w", err)
		}
	}
	same := c.Operation == guard.Update && bytes.Equal(now.spec, was.spec) && maps.Equal(now.Labels, was.Labels)
	if same && now.sameAt(name, was) {
		return nil, nil
	}
	text, err := annotations.Text(s.Guard.Engine, v.With(snapshot.Put(c.After)), c.After, b, nil)
	switch {
	case err == nil:
		return set(name, now, text), nil
	case same: // what was there is older, and was ours
		return set(name, now, was.Annotations[name]), nil
	default:
		return nil, err
	}
}

// sameAt reports whether two objects have the same annotation of a name.
func (p part) sameAt(name string, o part) bool {
	text, there := p.Annotations[name]
	old, had := o.Annotations[name]
	return text == old && there == had
}

// pointer makes a name a part of a JSON pointer (RFC 6901).
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// set gives the annotation a value, or takes it off if that is "".
func set(name string, now part, text string) []operation {
	old, there := now.Annotations[name]
	path := "/metadata/annotations/" + pointer.Replace(name)
	switch {
	case text == "" && there:
		return []operation{{Op: "remove", Path: path}}
	case text == old:
		return nil
	case now.Annotations == nil:
		return []operation{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{name: text}}}
	default:
		return []operation{{Op: "add", Path: path, Value: text}}
	}
}
