package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
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
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
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
	var now, was part
	if err := json.Unmarshal(r.Object.Raw, &now); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	if c.Operation == guard.Update {
		if err := json.Unmarshal(r.OldObject.Raw, &was); err != nil {
			return nil, fmt.Errorf("read oldObject: %w", err)
		}
		if bytes.Equal(now.Spec, was.Spec) && maps.Equal(now.Metadata.Labels, was.Metadata.Labels) {
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
	return set(name, now, was.Metadata.Annotations[name])
}

// set gives the annotation a value, or takes it off if that is "".
func set(name string, now part, text string) []operation {
	old, there := now.Metadata.Annotations[name]
	path := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	switch {
	case text == "" && there:
		return []operation{{Op: "remove", Path: path}}
	case text == old:
		return nil
	case now.Metadata.Annotations == nil:
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

// routeNote is the annotation of a route.
type routeNote struct {
	// Hash of the effective specs and the origins of their rules.
	Hash string `json:"hash"`
	// Policies by policy kind; paths with the same winners share an entry.
	Policies map[string][]winners `json:"policies,omitempty"`
	// Counts by policy kind, where Policies would be too large.
	Counts map[string]counts `json:"counts,omitempty"`
}

type winners struct {
	Paths []string          `json:"paths"`
	Rules map[string]string `json:"rules"`
}

type counts struct {
	Paths int `json:"paths"`
	Rules int `json:"rules"`
}

func (s *Server) effectivePolicy(v *store.View, o store.Object, b *effective.Budget) (string, error) {
	var items []api.EffectivePolicy
	err := s.Guard.Engine.Walk(v, effective.ScopeOf(o), false, b, func(e *effective.Effective) error {
		items = append(items, unnamed(e.API()))
		return nil
	})
	if err != nil || len(items) == 0 {
		return "", err
	}
	slices.SortFunc(items, effective.CompareItems)
	note := routeNote{Hash: hashOf(items, o.Ref()), Policies: make(map[string][]winners)}
	for _, it := range items {
		note.add(it)
	}
	return limited(note, func(string) any { return note.counted(items) })
}

func (n *routeNote) add(it api.EffectivePolicy) {
	kind := it.PolicyKind.String()
	rules := make(map[string]string, len(it.Rules))
	for _, r := range it.Rules {
		rules[r.Rule] = r.From.Key()
		if r.Block == merge.Object.String() {
			rules[r.Rule] = itself
		}
	}
	at := pathNote(it.Path)
	for i, w := range n.Policies[kind] {
		if maps.Equal(w.Rules, rules) {
			n.Policies[kind][i].Paths = append(w.Paths, at)
			return
		}
	}
	n.Policies[kind] = append(n.Policies[kind], winners{Paths: []string{at}, Rules: rules})
}

// unnamed takes the route's name out of what its own fields gave: it may be yet
// to be generated.
func unnamed(it api.EffectivePolicy) api.EffectivePolicy {
	for i := range it.Rules {
		if it.Rules[i].Block == merge.Object.String() {
			it.Rules[i].From.Name = ""
		}
	}
	return it
}

// pathNote names a path of the route: gateway#listener or the service that is
// its parent, and what is below the route.
func pathNote(path []api.PathElement) string {
	var above api.PathElement
	var below []string
	for _, e := range path {
		switch {
		case e.Index != nil:
			below = append(below, e.Section)
			if e.Member != "" {
				below = append(below, e.Member)
			}
		case len(below) > 0: // a backend
			below = append(below, e.String())
		case e.Kind == hierarchy.KindListener || e.Kind == hierarchy.KindService:
			above = e
		}
	}
	text := strings.TrimPrefix(above.String(), hierarchy.KindListener+" ")
	return strings.TrimSpace(text + " " + strings.Join(below, " "))
}

func (n *routeNote) counted(items []api.EffectivePolicy) routeNote {
	out := routeNote{Hash: n.Hash, Counts: make(map[string]counts)}
	for _, it := range items {
		c := out.Counts[it.PolicyKind.String()]
		c.Paths++
		c.Rules += len(it.Rules)
		out.Counts[it.PolicyKind.String()] = c
	}
	return out
}

// hashOf returns a short hash of effective policies, the name of the route
// left out: it is not known yet when it is generated.
func hashOf(items []api.EffectivePolicy, self api.Ref) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, it := range items {
		it.Policies = nil
		it.Path = slices.Clone(it.Path)
		for i, e := range it.Path {
			if e.Namespace == self.Namespace && e.Name == self.Name && strings.HasPrefix(e.Kind, self.Kind) {
				it.Path[i].Name = ""
			}
		}
		_ = enc.Encode(it) // a hash takes every write, and decoded JSON encodes
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
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
