package printers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Documents is the format of rendered limits that other programs read: for each
// gateway a YAML document of its actions, and one of the limits of the rate limit
// service.
const Documents Format = "documents"

// RenderedFormats are the formats of Rendered.
var RenderedFormats = []Format{Documents, JSON, YAML}

// Rendered writes rendered limits as JSON, as YAML, else as documents.
func (p Printer) Rendered(items []api.RenderedLimits) error {
	all := &api.RenderedLimitsList{TypeMeta: meta(api.KindRenderedLimitsList), Items: nonNil(items)}
	if p.Format == JSON || p.Format == YAML {
		return write(p, all, nil, nil)
	}
	var out bytes.Buffer
	for i := range all.Items {
		if err := writeDocuments(&out, all, i); err != nil {
			return fmt.Errorf("write %s as documents: %w", heading(all, i), err)
		}
	}
	if _, err := p.Out.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// writeDocuments writes the two documents of an item, each below a comment that
// names its gateway.
func writeDocuments(out *bytes.Buffer, all *api.RenderedLimitsList, i int) error {
	item := &all.Items[i]
	for _, document := range []any{
		struct {
			GatewayActions []api.GatewayAction `json:"gateway_actions"`
		}{item.GatewayActions},
		struct {
			Limits []api.RenderedLimit `json:"limits"`
		}{item.Limits},
	} {
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.WriteString("# " + heading(all, i) + "\n")
		if err := writeOrdered(out, document); err != nil {
			return err
		}
	}
	return nil
}

// heading returns the gateway or the Service of an item, and its policy kind if
// the list has several.
func heading(all *api.RenderedLimitsList, i int) string {
	item := &all.Items[i]
	text := ""
	for _, ref := range []*api.Ref{item.Gateway, item.Service} {
		if ref != nil {
			text = ref.String()
		}
	}
	if slices.ContainsFunc(all.Items, func(o api.RenderedLimits) bool { return o.PolicyKind != item.PolicyKind }) {
		text += ", " + item.PolicyKind.String()
	}
	return text
}

// writeOrdered writes plain data as YAML with the fields in the order of their
// struct, which is that of the RFC.
func writeOrdered(out io.Writer, plain any) error {
	text, err := marshal(plain)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	node, err := ordered(decoder)
	if err != nil {
		return err
	}
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	return errors.Join(e.Encode(node), e.Close())
}

// ordered decodes the next JSON value as a YAML node.
func ordered(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if open, ok := token.(json.Delim); ok {
		return nested(d, open)
	}
	return scalar(token)
}

// nested decodes the rest of an object or a list.
func nested(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if open == '[' {
		out = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	}
	for d.More() {
		value, err := ordered(d) // names of fields are tokens, too
		if err != nil {
			return nil, err
		}
		if n := len(out.Content); open == '{' && n%2 == 1 && slices.Contains(flowFields, out.Content[n-1].Value) {
			setFlowStyle(value)
		}
		out.Content = append(out.Content, value)
	}
	_, err := d.Token()
	return out, err
}

// flowFields are fields with lists that the RFC writes on one line.
var flowFields = []string{"paths", "methods", "hosts"}

func setFlowStyle(list *yaml.Node) {
	list.Style = yaml.FlowStyle
	for _, text := range list.Content {
		text.Style = yaml.DoubleQuotedStyle
	}
}

// scalar returns the node of a number or a string. Strings are quoted if some
// version of YAML reads them as another type (on, 1:30).
func scalar(token json.Token) (*yaml.Node, error) {
	if number, ok := token.(json.Number); ok {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: number.String()}, nil
	}
	node := &yaml.Node{}
	err := node.Encode(token)
	return node, err
}
