package policykind

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"overrule.dev/overrule/merge"
)

// fieldPath is the segments of a dotted field path; * matches any segment.
type fieldPath []string

// parsedFieldPaths caches the field paths of profiles, by text: each is looked up
// for every policy that is read.
var parsedFieldPaths sync.Map // of fieldPath

// cachedFieldPath parses a field path of a compiled profile.
func cachedFieldPath(text string) fieldPath {
	if a, ok := parsedFieldPaths.Load(text); ok {
		return a.(fieldPath) //nolint:forcetypeassert // nothing else is in there
	}
	a, _ := parseFieldPath(text)
	parsedFieldPaths.Store(text, a)
	return a
}

// parseFieldPath parses a field path of a profile.
func parseFieldPath(text string) (fieldPath, error) {
	quoted := strings.ReplaceAll(text, ".*", `["*"]`) // as a rule key spells it
	if rest, ok := strings.CutPrefix(quoted, "*"); ok {
		quoted = `["*"]` + rest
	}
	k, err := merge.ParseKey(quoted)
	if err != nil {
		return nil, errors.New("must be a field path such as rules.authentication.*")
	}
	return k.Segments(), nil
}

// matches reports whether the path matches a key.
func (p fieldPath) matches(k merge.Key) bool {
	return slices.EqualFunc(p, k.Segments(), func(a, b string) bool { return a == "*" || a == b })
}

// isPrefixOf reports whether the field with those segments is at the path or below it.
func (p fieldPath) isPrefixOf(segments []string) bool {
	return len(segments) >= len(p) && slices.EqualFunc(p, segments[:len(p)], func(a, b string) bool { return a == "*" || a == b })
}

// subtree is the fields at a path and below it, prepared to be looked up by many keys.
type subtree struct {
	fieldPath
	exact *merge.Key // the path as a key, nil if it has a *
}

func subtrees(all []fieldPath) []subtree {
	out := make([]subtree, len(all))
	for i, a := range all {
		out[i].fieldPath = a
		if !slices.Contains(a, "*") {
			k := merge.KeyOf(a...)
			out[i].exact = &k
		}
	}
	return out
}

// contains reports whether a key is at the path or below it.
func (s *subtree) contains(k merge.Key) bool {
	if s.exact != nil {
		return s.exact.Holds(k)
	}
	return s.isPrefixOf(k.Segments())
}

// lookup returns the value at a path without wildcards.
func (p fieldPath) lookup(content any) (any, bool) {
	for _, segment := range p {
		object, ok := content.(map[string]any)
		if !ok {
			return nil, false
		}
		if content, ok = object[segment]; !ok {
			return nil, false
		}
	}
	return content, true
}

// without returns a copy of content without the value at the path, and without
// the objects that become empty. It does not edit content.
func (p fieldPath) without(content map[string]any) map[string]any {
	if _, ok := p.lookup(content); !ok {
		return content
	}
	out := maps.Clone(content)
	if len(p) == 1 {
		delete(out, p[0])
		return out
	}
	below, _ := out[p[0]].(map[string]any)
	if below = p[1:].without(below); len(below) == 0 {
		delete(out, p[0])
		return out
	}
	out[p[0]] = below
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// parseRouteField parses the path of a field of a route.
func parseRouteField(text string) ([]Segment, error) {
	var out []Segment
	for part := range strings.SplitSeq(text, ".") {
		name, list := strings.CutSuffix(part, "[*]")
		if name == "" || strings.ContainsAny(name, "[]*") {
			return nil, errors.New("must be a field path such as spec.rules[*].timeouts.request")
		}
		out = append(out, Segment{name, list})
	}
	if out[0] != (Segment{Name: "spec"}) || len(out) == 1 {
		return nil, errors.New("must be a field below spec, such as spec.rules[*].timeouts.request")
	}
	if out[1].Name == "rules" && !out[1].List {
		return nil, errors.New("must select an item of the list spec.rules; use spec.rules[*]")
	}
	if out[len(out)-1].List {
		return nil, errors.New("must not end with [*]; use the path of the list, or of a field of its items")
	}
	return out, nil
}
