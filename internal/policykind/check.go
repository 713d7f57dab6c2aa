package policykind

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// part is a part of the objects of a kind.
type part int

const (
	notChecked part = iota // for field paths that Check leaves out
	inSpec
	inContent
	inBlocks // in one of the blocks, if there are any
	anywhere // in the content or in a block
)

// profilePath is a field path in a field of a profile.
type profilePath struct {
	at   string
	path fieldPath
	in   part
}

func (k *Kind) addPath(at *field.Path, p fieldPath, in part) {
	if in != notChecked {
		k.paths = append(k.paths, profilePath{at.String(), p, in})
	}
}

// Check returns one message for each field path of the profile that the schema of
// its kind does not have. The schema is that of the whole object.
func (k *Kind) Check(schema *apiextensionsv1.JSONSchemaProps) []string {
	if schema == nil {
		return nil
	}
	c := schemaChecker{kind: k, schema: schema}
	content := slices.Concat(k.root, k.content)
	blocks := c.blocks(content)
	parts := map[part][]fieldPath{
		inSpec: {k.root}, inContent: {content}, inBlocks: blocks, anywhere: append([]fieldPath{content}, blocks...),
	}
	var missing []string
	for _, p := range k.paths {
		below, path := parts[p.in], p.path
		if k.Named != nil && p.in == anywhere && len(path) > 0 {
			path = path[1:] // the first segment is a name
		}
		if len(below) > 0 && !slices.ContainsFunc(below, func(at fieldPath) bool { return c.has(at, path) }) {
			missing = append(missing, fmt.Sprintf("%s: %s is not in the schema of %s", p.at, strings.Join(slices.Concat(below[0], p.path), "."), k.Ref()))
		}
	}
	return missing
}

// schemaChecker looks up the field paths of a profile in a schema.
type schemaChecker struct {
	kind   *Kind
	schema *apiextensionsv1.JSONSchemaProps
}

// blocks returns the paths of the blocks that the schema has.
func (c *schemaChecker) blocks(content fieldPath) []fieldPath {
	var out []fieldPath
	for _, name := range slices.Concat(c.kind.Blocks.Defaults, c.kind.Blocks.Overrides) {
		if at := append(slices.Clip(content), name); c.has(at, nil) {
			out = append(out, at)
		}
	}
	return out
}

// has reports whether the schema has a path below a parent. A path in a variant is one in
// the field that is read as it.
func (c *schemaChecker) has(place, a fieldPath) bool {
	for _, v := range c.kind.Variants {
		if len(a) > 0 && a[0] == v.As {
			a = append(fieldPath{v.Name}, a[1:]...)
		}
	}
	return c.walk(c.schema, slices.Concat(place, a), len(place), 0)
}

// walk looks up the segments of a path from depth on below a node. The segments
// from start on are those of the profile.
func (c *schemaChecker) walk(node *apiextensionsv1.JSONSchemaProps, a fieldPath, start, depth int) bool {
	switch {
	case depth == len(a):
		return true
	case node.XPreserveUnknownFields != nil && *node.XPreserveUnknownFields || node.XEmbeddedResource:
		return true // anything may be below
	case node.Items != nil:
		return node.Items.Schema != nil && depth >= start && c.isKeyedList(a[start:depth]) &&
			c.walk(node.Items.Schema, a, start, depth+1)
	}
	for name, child := range node.Properties {
		if (a[depth] == "*" || a[depth] == name) && c.walk(&child, a, start, depth+1) {
			return true
		}
	}
	switch others := node.AdditionalProperties; {
	case others == nil:
		return false
	case others.Schema == nil:
		return others.Allows
	default:
		return c.walk(others.Schema, a, start, depth+1)
	}
}

// isKeyedList reports whether the profile splits the list at a path by key. No field
// path leads into any other list.
func (c *schemaChecker) isKeyedList(a fieldPath) bool {
	return slices.ContainsFunc(c.kind.lists, func(l keyedList) bool {
		return slices.EqualFunc(l.path, a, func(a, b string) bool { return a == b || a == "*" || b == "*" })
	})
}
