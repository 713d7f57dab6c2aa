package printers

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// Documents is the format of rendered limits that other programs read: for each
// gateway a YAML document of its actions, and one of the limits of the rate limit
// service.
const Documents Format = "documents"

// RenderedFormats are the formats of Rendered.
var RenderedFormats = []Format{Documents, JSON, YAML}

// Rendered writes rendered limits as JSON, as YAML, else as documents.
func (p Printer) Rendered(items []api.RenderedLimits) error {
	return write(p, &api.RenderedLimitsList{TypeMeta: meta(api.KindRenderedLimitsList), Items: nonNil(items)}, writeDocuments)
}

// writeDocuments writes the two documents of each item, each below a comment that
// names its gateway.
func writeDocuments(w *textWriter, all *api.RenderedLimitsList) {
	for i, item := range all.Items {
		for _, document := range []any{
			struct {
				GatewayActions []api.GatewayAction `json:"gateway_actions"`
			}{item.GatewayActions},
			struct {
				Limits []api.RenderedLimit `json:"limits"`
			}{item.Limits},
		} {
			if w.text.Len() > 0 {
				w.text.WriteString("---\n")
			}
			w.text.WriteString("# " + heading(all, i) + "\n")
			w.err = errors.Join(w.err, writeOrdered(&w.text, document))
		}
	}
}

// heading returns the gateway or the Service of an item, and its policy kind if
// the list has several.
func heading(all *api.RenderedLimitsList, i int) string {
	item := &all.Items[i]
	text := cmp.Or(item.Gateway, item.Service).String()
	if slices.ContainsFunc(all.Items, func(o api.RenderedLimits) bool { return o.PolicyKind != item.PolicyKind }) {
		text += ", " + item.PolicyKind.String()
	}
	return text
}

// notYAML are characters that JSON may contain and YAML must escape.
var notYAML = regexp.MustCompile(`[\x7f-\x9f\x{feff}\x{fffe}\x{ffff}]`)

// writeOrdered writes plain data as YAML with the fields in the order of their
// struct, which is that of the RFC. It reads their JSON as YAML.
func writeOrdered(out io.Writer, plain any) error {
	text, err := decode.Encode(plain, "  ")
	if err != nil {
		return err
	}
	text = notYAML.ReplaceAllFunc(text, func(c []byte) []byte { return fmt.Appendf(nil, `\u%04x`, []rune(string(c))[0]) })
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return err
	}
	if err := setBlockStyle(&node); err != nil {
		return err
	}
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	return errors.Join(e.Encode(&node), e.Close())
}

// flowFields are fields with lists that the RFC writes on one line, as JSON does.
var flowFields = []string{"paths", "methods", "hosts"}

// setBlockStyle replaces the style of JSON, except of flowFields. Strings are quoted if
// some version of YAML reads them as another type (on, 1:30).
func setBlockStyle(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return n.Encode(n.Value)
	}
	n.Style = 0
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && slices.Contains(flowFields, n.Content[i-1].Value) {
			continue
		}
		if err := setBlockStyle(child); err != nil {
			return err
		}
	}
	return nil
}
