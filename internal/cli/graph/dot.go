package graph

import (
	"html"
	"strings"
)

var dot = syntax{
	text:      dotText,
	box:       `%s [shape=box, style=filled, fillcolor="#eef4ff", color="#3b6fb6", label=<%s>];`,
	note:      `%s [shape=note, style=filled, fillcolor="#fff8dc", color="#9a7b1c", label=<%s>];`,
	result:    `%s [shape=box, style="filled,rounded", fillcolor="#e9f7ec", color="#2e7d43", label=<%s>];`,
	toBox:     "%s -> %s [arrowhead=none];",
	toResult:  "%s -> %s [style=dotted];",
	toTarget:  "%[1]s -> %[4]s [%[2]s, label=<%[3]s>];",
	overrides: "penwidth=4", inactive: "style=dashed", defaults: "penwidth=1",
}

// DOT returns the picture in the language of Graphviz.
func (g *Graph) DOT() string {
	return `digraph effective {
  rankdir=LR; fontname="sans-serif"; label=<` + strings.Join(g.legend(dotText), "<br/>") + `>; labelloc=b;
  node [fontname="sans-serif", fontsize=11]; edge [fontname="sans-serif", fontsize=10];
` + g.write(dot) + "}\n"
}

// dotText escapes a text for an HTML-like label, which must not be empty.
func dotText(text string) string {
	text = html.EscapeString(printable(shorten(text, maxText)))
	if text == "" {
		return " "
	}
	return text
}
