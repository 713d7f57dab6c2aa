package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Location is the position of a field in a file. Lines and columns count from 1, and
// columns count characters. EndColumn is the column after the last character. A zero
// Line stands for the whole file.
type Location struct {
	File                    string
	Line, Column, EndColumn int
}

// origin is where the text of an object is: a document, and for an item of a list its
// index there, with one more for each list around it.
type origin struct {
	text  *documentText
	items []int
}

// documentText is the text of a document, which is parsed when the first position in
// it is needed. The objects of a list share it.
type documentText struct {
	data      []byte
	startLine int
	once      sync.Once
	root      *yaml.Node
	lines     [][]byte
}

func (o origin) item(index int) origin {
	return origin{o.text, append(slices.Clip(o.items), index)}
}

// Locate returns the position of a field of the object, of its key: of
// "spec.rules.authentication.a", `spec.limits["a.b"].rates[0]` or
// "spec.targetRefs[1].name". If the file has only a part of the field, it is that of
// the deepest part. The position of "" is the start of the object.
//
// Keys with dots or brackets need no quotes: at a map, the longest key with which the
// rest of the field starts is meant.
func (o *Object) Locate(field string) Location {
	out := Location{File: o.At.File}
	if o.origin.text == nil {
		return out
	}
	root := o.origin.text.parse()
	if root == nil { // the parsers do not agree
		out.Line, out.Column, out.EndColumn = o.At.Line, 1, 1
		return out
	}
	var path strings.Builder // from the document
	for _, index := range o.origin.items {
		fmt.Fprintf(&path, ".items[%d]", index)
	}
	if field != "" && field[0] != '[' {
		path.WriteByte('.')
	}
	path.WriteString(field)
	out.Line, out.Column, out.EndColumn = o.origin.text.extent(find(root, strings.TrimPrefix(path.String(), ".")))
	return out
}

// parse returns the root node of the document, nil if it cannot be parsed.
func (t *documentText) parse() *yaml.Node {
	t.once.Do(func() {
		var document yaml.Node
		if err := yaml.Unmarshal(t.data, &document); err != nil || len(document.Content) != 1 {
			return
		}
		t.root = resolve(document.Content[0])
		t.lines = slices.Collect(bytes.Lines(t.data))
	})
	return t.root
}

// extent returns the line of a node in the file, its column and the column after its
// text: of a scalar, or of the first key of a map.
func (t *documentText) extent(n *yaml.Node) (line, column, endColumn int) {
	for len(n.Content) > 0 && n.Style&yaml.FlowStyle == 0 {
		n = n.Content[0]
	}
	line, column = n.Line+t.startLine-1, n.Column
	if n.Line < 1 || n.Line > len(t.lines) {
		return line, column, column + 1
	}
	rest := []rune(string(bytes.TrimRight(t.lines[n.Line-1], "\r\n")))
	rest = rest[min(column-1, len(rest)):]
	if skipped := propertiesLength(rest); n.Kind == yaml.ScalarNode {
		column, rest = column+skipped, rest[skipped:]
	}
	return line, column, column + max(1, tokenLength(n, rest))
}

// propertiesLength returns the length of the anchor and the tag before a scalar.
func propertiesLength(text []rune) int {
	length := 0
	for length < len(text) && (text[length] == '&' || text[length] == '!') {
		end := length
		for end < len(text) && text[end] != ' ' && text[end] != '\t' {
			end++
		}
		for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
			end++
		}
		if end == len(text) {
			return length
		}
		length = end
	}
	return length
}

// tokenLength returns the length of the text of a node on its first line, which
// starts with it.
func tokenLength(n *yaml.Node, text []rune) int {
	switch {
	case n.Kind == yaml.AliasNode:
		return min(len(text), 1+utf8.RuneCountInString(n.Value))
	case n.Kind != yaml.ScalarNode || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return 1
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return quotedLength(text)
	default:
		return min(len(text), utf8.RuneCountInString(n.Value))
	}
}

// quotedLength returns the length of a quoted text with its quotes.
func quotedLength(text []rune) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[0] == '"' && text[i] == '\\':
			i++
		case text[0] == '\'' && text[i] == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		case text[i] == text[0]:
			return i + 1
		}
	}
	return len(text)
}
