package policykind

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Check returns what of the profile is not in the schema of its kind: one
// message for each address, in the order of the profile's fields. The schema is
// that of the whole object.
func (k *Kind) Check(schema *apiextensionsv1.JSONSchemaProps) []string {
	if schema == nil {
		return nil
	}
	c := checker{kind: k, schema: schema}
	spec, content := address{"spec"}, append(address{"spec"}, k.content...)
	blocks := c.blocks(content)
	anywhere := append([]address{content}, blocks...)

	t := k.Targets
	c.texts("targets.fields", t.Fields, spec)
	c.texts("targets.selectors", t.Selectors, spec)
	c.texts("targets.workloads", t.Workloads, spec)
	c.text("content", k.Content, spec)
	c.texts("ignore", k.Ignore, content)
	c.texts("blocks.defaults", k.Blocks.Defaults, content)
	c.texts("blocks.overrides", k.Blocks.Overrides, content)
	c.text("blocks.when", k.Blocks.When, anywhere...)
	if b := k.Blocks.Bare; b != nil {
		c.text("blocks.bare.field", b.Field, spec)
	}
	if len(blocks) > 0 {
		c.text("strategy.field", k.Strategy.Field, blocks...)
	}
	c.text("strategy.bareField", k.Strategy.BareField, content)
	c.texts("unset", k.Unset, spec)
	c.texts("rules", k.Rules, anywhere...)
	c.texts("whole", k.Whole, anywhere...)
	for i, l := range k.lists {
		c.address(fmt.Sprintf("lists[%d].path", i), l.at, anywhere...)
		c.address(fmt.Sprintf("lists[%d].key", i), append(slices.Clip(l.at), "*", l.key), anywhere...)
	}
	if k.Order != nil {
		c.text("order.field", k.Order.Field, spec)
		if k.Order.Then != nil {
			c.text("order.then.field", k.Order.Then.Field, spec)
		}
	}
	for i, f := range k.fields {
		c.address(fmt.Sprintf("fields[%d].rule", i), f.Rule.Segments(), anywhere...)
	}
	c.texts("gates", k.Gates, anywhere...)
	c.texts("alternatives", k.Alternatives, anywhere...)
	return c.missing
}

// checker looks a profile's addresses up in a schema.
type checker struct {
	kind    *Kind
	schema  *apiextensionsv1.JSONSchemaProps
	missing []string
}

// blocks returns where the blocks are that the schema has.
func (c *checker) blocks(content address) []address {
	var out []address
	for _, name := range slices.Concat(c.kind.Blocks.Defaults, c.kind.Blocks.Overrides) {
		if at := append(slices.Clip(content), name); c.has(at, nil) {
			out = append(out, at)
		}
	}
	return out
}

func (c *checker) texts(field string, texts []string, below ...address) {
	for i, text := range texts {
		c.text(fmt.Sprintf("%s[%d]", field, i), text, below...)
	}
}

func (c *checker) text(field, text string, below ...address) {
	if text == "" {
		return
	}
	a, _ := parseAddress(text) // the profile was compiled
	c.address(field, a, below...)
}

// address books an address that is below none of the places.
func (c *checker) address(field string, a address, below ...address) {
	if !slices.ContainsFunc(below, func(at address) bool { return c.has(at, a) }) {
		c.missing = append(c.missing, fmt.Sprintf("%s: %s is not in the schema of %s",
			field, strings.Join(slices.Concat(below[0], a), "."), c.kind.Ref()))
	}
}

// has reports whether the schema has an address below a place.
func (c *checker) has(place, a address) bool {
	return c.walk(c.schema, slices.Concat(place, a), len(place), 0)
}

// walk goes down from a node that stands for the first segments of an address;
// those from start on are the profile's own.
func (c *checker) walk(node *apiextensionsv1.JSONSchemaProps, a address, start, depth int) bool {
	switch {
	case depth == len(a):
		return true
	case node.XPreserveUnknownFields != nil && *node.XPreserveUnknownFields || node.XEmbeddedResource:
		return true // anything may be below
	case node.Items != nil:
		return node.Items.Schema != nil && depth >= start && c.keyed(a[start:depth]) &&
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

// keyed reports whether the profile takes the list at an address apart: into
// any other no address goes.
func (c *checker) keyed(a address) bool {
	return slices.ContainsFunc(c.kind.lists, func(l keyedList) bool {
		return slices.EqualFunc(l.at, a, func(a, b string) bool { return a == b || a == "*" || b == "*" })
	})
}
