package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// annotationLimit is the most that an annotation of ours takes.
const annotationLimit = 4 << 10

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

// annotationOf returns the name of our annotation on an object, or "".
func annotationOf(o store.Object) string {
	switch o.(type) {
	case *policykind.Policy:
		return api.AnnotationOutcome
	case *hierarchy.Route:
		return api.AnnotationEffectivePolicy
	default:
		return ""
	}
}

// annotate returns the patch that puts our annotation on the object of a
// request. Where neither spec nor labels changed it only keeps what was there,
// so that an unchanged apply stays a no-op.
func (s *Server) annotate(v *store.View, r *admissionv1.AdmissionRequest, c guard.Change, b *effective.Budget) ([]operation, error) {
	name := annotationOf(c.After)
	if name == "" {
		return nil, nil
	}
	now, err := partOf(r.Object.Raw)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of object: %w", err)
	}
	if c.Operation == guard.Update {
		was, err := partOf(r.OldObject.Raw)
		if err != nil {
			return nil, fmt.Errorf("read the metadata of oldObject: %w", err)
		}
		if bytes.Equal(now.spec, was.spec) && maps.Equal(now.Labels, was.Labels) {
			return keep(name, now, was), nil
		}
	}
	text, err := s.annotation(v.With(store.Put(c.After)), c.After, b)
	if err != nil {
		return nil, err
	}
	return set(name, now, text), nil
}

// keep puts back what the annotation was, whatever the writer made of it.
func keep(name string, now, was part) []operation {
	return set(name, now, was.Annotations[name])
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

// annotation computes the value. It holds nothing that depends on a uid, the
// object's own name or the time: none of them is there yet on a create.
func (s *Server) annotation(v *store.View, o store.Object, b *effective.Budget) (string, error) {
	if p, ok := o.(*policykind.Policy); ok {
		return s.outcome(v, p, b)
	}
	return s.effectivePolicy(v, o, b)
}

// outcomeNote is the annotation of a policy.
type outcomeNote struct {
	State api.State      `json:"state"`
	Paths api.PathCounts `json:"paths"`
	Lost  []lostNote     `json:"lost,omitempty"`
	// Hash of what was left out for its size.
	Hash string `json:"hash,omitempty"`
}

type lostNote struct {
	Rule  string `json:"rule"`
	To    string `json:"to"`
	Paths int    `json:"paths"`
}

// itself is what beat a rule by another block of the same policy, whose name
// may be yet to be generated.
const itself = "itself"

func (s *Server) outcome(v *store.View, p *policykind.Policy, b *effective.Budget) (string, error) {
	var sum effective.Outcomes
	err := s.Guard.Engine.Walk(v, effective.ScopeOf(p), false, b, func(e *effective.Effective) error {
		if e.Kind == p.Kind {
			sum.Add(e)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	out := sum.Of(v, p)
	note := outcomeNote{State: out.State, Paths: out.Paths}
	for _, l := range out.Lost {
		to := l.To.String()
		if l.To == p.Ref() {
			to = itself
		}
		note.Lost = append(note.Lost, lostNote{Rule: l.Rule, To: to, Paths: l.Paths})
	}
	return limited(note, func(hash string) any {
		return outcomeNote{State: note.State, Paths: note.Paths, Hash: hash}
	})
}

// limited returns a note as compact JSON, or the shorter one with the hash of
// the whole where it is too large.
func limited(note any, shorter func(hash string) any) (string, error) {
	data, err := json.Marshal(note)
	if err != nil {
		return "", err
	}
	if len(data) <= annotationLimit {
		return string(data), nil
	}
	sum := sha256.Sum256(data)
	data, err = json.Marshal(shorter(hex.EncodeToString(sum[:8])))
	return string(data), err
}
