package policykind

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Check returns one message for each field path of the profile that the schema of
// its kind does not have, in the order of the profile's fields. The schema is that
// of the whole object.
func (k *Kind) Check(schema *apiextensionsv1.JSONSchemaProps) []string {
	if schema == nil {
		return nil
	}
	c := schemaChecker{kind: k, schema: schema}
	spec, content := fieldPath{"spec"}, append(fieldPath{"spec"}, k.content...)
	blocks := c.blocks(content)
	anywhere := append([]fieldPath{content}, blocks...)

	t := k.Targets
	c.checkAll("targets.fields", t.Fields, spec)
	c.checkAll("targets.selectors", t.Selectors, spec)
	c.checkAll("targets.workloads", t.Workloads, spec)
	c.checkText("content", k.Content, spec)
	c.checkAll("ignore", k.Ignore, content)
	c.checkAll("blocks.defaults", k.Blocks.Defaults, content)
	c.checkAll("blocks.overrides", k.Blocks.Overrides, content)
	c.checkText("blocks.when", k.Blocks.When, anywhere...)
	if b := k.Blocks.Bare; b != nil {
		c.checkText("blocks.bare.field", b.Field, spec)
	}
	if len(blocks) > 0 {
		c.checkText("strategy.field", k.Strategy.Field, blocks...)
	}
	c.checkText("strategy.bareField", k.Strategy.BareField, content)
	c.checkAll("unset", k.Unset, spec)
	c.checkAll("rules", k.Rules, anywhere...)
	c.checkAll("whole", k.Whole, anywhere...)
	for i, l := range k.lists {
		c.checkPath(fmt.Sprintf("lists[%d].path", i), l.path, anywhere...)
		c.checkPath(fmt.Sprintf("lists[%d].key", i), slices.Concat(l.path, fieldPath{"*"}, l.key), anywhere...)
	}
	for i, g := range k.Groups {
		field := fmt.Sprintf("groups[%d]", i)
		c.checkAll(field+".rules", g.Rules, anywhere...)
		for _, rule := range g.Rules {
			if g.Key != "" && g.Key != "." {
				c.checkText(field+".key", rule+"."+g.Key, anywhere...)
			}
			if g.Disable != "" {
				c.checkText(field+".disable", rule+"."+g.Disable, anywhere...)
			}
		}
	}
	if k.Order != nil {
		c.checkText("order.field", k.Order.Field, spec)
		if k.Order.Then != nil {
			c.checkText("order.then.field", k.Order.Then.Field, spec)
		}
	}
	for i, f := range k.fields {
		c.checkPath(fmt.Sprintf("fields[%d].rule", i), f.Rule.Segments(), anywhere...)
	}
	c.checkAll("gates", k.Gates, anywhere...)
	c.checkAll("alternatives", k.Alternatives, anywhere...)
	for i, g := range k.Protection {
		c.checkAll(fmt.Sprintf("protection[%d].rules", i), g.Rules, anywhere...)
	}
	return c.missing
}

// schemaChecker looks up the field paths of a profile in a schema.
type schemaChecker struct {
	kind    *Kind
	schema  *apiextensionsv1.JSONSchemaProps
	missing []string
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

func (c *schemaChecker) checkAll(field string, texts []string, below ...fieldPath) {
	for i, text := range texts {
		c.checkText(fmt.Sprintf("%s[%d]", field, i), text, below...)
	}
}

func (c *schemaChecker) checkText(field, text string, below ...fieldPath) {
	if text == "" {
		return
	}
	a, _ := parseFieldPath(text) // the profile was compiled
	c.checkPath(field, a, below...)
}

// checkPath reports a path that is below none of the parents.
func (c *schemaChecker) checkPath(field string, a fieldPath, below ...fieldPath) {
	if !slices.ContainsFunc(below, func(at fieldPath) bool { return c.has(at, a) }) {
		c.missing = append(c.missing, fmt.Sprintf("spec.%s: %s is not in the schema of %s",
			field, strings.Join(slices.Concat(below[0], a), "."), c.kind.Ref()))
	}
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
