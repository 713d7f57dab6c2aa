package policykind

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"overrule.dev/overrule/merge"
)

// address is the segments of a dotted address, * for any.
type fieldPath []string

// parsed are the addresses of profiles that policies are read by: each is asked
// for at every policy.
var parsedFieldPaths sync.Map // of address, by text

// addressOf returns an address of a profile that was compiled.
func cachedFieldPath(text string) fieldPath {
	if a, ok := parsedFieldPaths.Load(text); ok {
		return a.(fieldPath) //nolint:forcetypeassert // nothing else is in there
	}
	a, _ := parseFieldPath(text)
	parsedFieldPaths.Store(text, a)
	return a
}

// parseAddress reads an address as profiles spell it.
func parseFieldPath(text string) (fieldPath, error) {
	quoted := strings.ReplaceAll(text, ".*", `["*"]`) // as a rule key spells it
	if rest, ok := strings.CutPrefix(quoted, "*"); ok {
		quoted = `["*"]` + rest
	}
	k, err := merge.ParseKey(quoted)
	if err != nil {
		return nil, fmt.Errorf("address %q cannot be read: write it like rules.authentication.*", text)
	}
	return k.Segments(), nil
}

// is reports whether the address is that of a key.
func (a fieldPath) matches(k merge.Key) bool {
	return slices.EqualFunc(a, k.Segments(), func(a, b string) bool { return a == "*" || a == b })
}

// holds reports whether what has those segments is at the address or below it.
func (a fieldPath) isPrefixOf(segments []string) bool {
	return len(segments) >= len(a) && slices.EqualFunc(a, segments[:len(a)], func(a, b string) bool { return a == "*" || a == b })
}

// region is an address as it is asked for many keys.
type subtree struct {
	fieldPath
	exact *merge.Key // the address as a key, nil if it has a *
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

// has reports whether a key is at the address or below it.
func (r *subtree) contains(k merge.Key) bool {
	if r.exact != nil {
		return r.exact.Holds(k)
	}
	return r.isPrefixOf(k.Segments())
}

// in returns the value at the address, without any *.
func (a fieldPath) lookup(content any) (any, bool) {
	for _, segment := range a {
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

// without returns content without what is at the address, and without the
// objects that this empties. It edits nothing.
func (a fieldPath) without(content map[string]any) map[string]any {
	if _, ok := a.lookup(content); !ok {
		return content
	}
	out := maps.Clone(content)
	if len(a) == 1 {
		delete(out, a[0])
		return out
	}
	below, _ := out[a[0]].(map[string]any)
	if below = a[1:].without(below); len(below) == 0 {
		delete(out, a[0])
		return out
	}
	out[a[0]] = below
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// parseRoute reads the address of a field of a route.
func parseRouteField(text string) ([]Segment, error) {
	var out []Segment
	for part := range strings.SplitSeq(text, ".") {
		name, list := strings.CutSuffix(part, "[*]")
		if name == "" || strings.ContainsAny(name, "[]*") {
			return nil, fmt.Errorf("address %q cannot be read: write it like spec.rules[*].timeouts.request", text)
		}
		out = append(out, Segment{name, list})
	}
	if out[0] != (Segment{Name: "spec"}) || len(out) == 1 {
		return nil, fmt.Errorf("address %q is not below spec: write it like spec.rules[*].timeouts.request", text)
	}
	if out[1].Name == "rules" && !out[1].List {
		return nil, fmt.Errorf("address %q: spec.rules is a list: write spec.rules[*], the rule of the path", text)
	}
	if out[len(out)-1].List {
		return nil, fmt.Errorf("address %q ends with a list's items: name the list, which is one value, or a field of its items", text)
	}
	return out, nil
}
