package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// find returns the node of a field below a node: the key of the deepest part that
// exists, or the item of a list.
func find(n *yaml.Node, field string) *yaml.Node {
	found := n
	for field != "" {
		n = resolve(n)
		var key, value *yaml.Node
		switch n.Kind {
		case yaml.MappingNode:
			key, value, field = findKey(n, field, nil)
		case yaml.SequenceNode:
			value, field = findItem(n, field)
			key = value
		default: // a scalar has no fields
		}
		if value == nil {
			return found
		}
		found, n = key, value
	}
	return found
}

// maxMerges bounds the merge keys that are followed into one another.
const maxMerges = 16

// findKey returns the entry of a map with which a field starts, with the longest key,
// and the rest of the field. Keys that are merged into the map come after its own.
func findKey(n *yaml.Node, field string, above []*yaml.Node) (key, value *yaml.Node, rest string) {
	longest := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if after, ok := cutKey(field, name); ok && len(name) > longest {
			longest, key, value, rest = len(name), n.Content[i], n.Content[i+1], after
		}
	}
	if key != nil || len(above) == maxMerges {
		return key, value, rest
	}
	for _, merged := range mergedMaps(n) {
		if key, value, rest = findKey(merged, field, append(above, n)); key != nil {
			return key, value, rest
		}
	}
	return nil, nil, field
}

// mergedMaps returns the maps that the key << merges into a map.
func mergedMaps(n *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Value != "<<" || key.Tag != "!!merge" {
			continue
		}
		merged := resolve(n.Content[i+1])
		all := []*yaml.Node{merged}
		if merged.Kind == yaml.SequenceNode {
			all = merged.Content
		}
		for _, m := range all {
			if m = resolve(m); m.Kind == yaml.MappingNode {
				out = append(out, m)
			}
		}
	}
	return out
}

// cutKey removes a key from the start of a field: "key", ".key", "[key]" or
// `["key"]`. It reports whether the field starts with it.
func cutKey(field, key string) (rest string, ok bool) {
	for _, form := range []string{"[" + key + "]", "[" + strconv.Quote(key) + "]", "['" + key + "']", "." + key, key} {
		after, found := strings.CutPrefix(field, form)
		if found && (after == "" || after[0] == '.' || after[0] == '[') && form != "" {
			return after, true
		}
	}
	return field, false
}

// findItem returns the item of a list with which a field starts, as [1] or .1, and the
// rest of the field.
func findItem(n *yaml.Node, field string) (item *yaml.Node, rest string) {
	text, inBrackets := strings.CutPrefix(field, "[")
	if !inBrackets {
		text = strings.TrimPrefix(field, ".")
	}
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	index, err := strconv.Atoi(text[:digits])
	rest = text[digits:]
	if inBrackets {
		var closed bool
		if rest, closed = strings.CutPrefix(rest, "]"); !closed {
			return nil, field
		}
	}
	if err != nil || index >= len(n.Content) {
		return nil, field
	}
	return n.Content[index], rest
}

// resolve returns the node that an alias refers to, or the node itself.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
