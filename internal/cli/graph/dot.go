package graph

import (
	"fmt"
	"html"
	"strings"
)

// DOT returns the picture in the language of Graphviz.
func (g *Graph) DOT() string {
	var d dot
	d.line("digraph effective {")
	d.line("  rankdir=LR; fontname=\"sans-serif\"; label=<%s>; labelloc=b;", strings.Join(g.legend(dotText), "<br/>"))
	d.line("  node [fontname=\"sans-serif\", fontsize=11]; edge [fontname=\"sans-serif\", fontsize=10];")
	for _, b := range g.Boxes {
		kind, name := b.Title()
		d.line("  %s [shape=box, style=filled, fillcolor=\"#eef4ff\", color=\"#3b6fb6\", label=<%s>];",
			b.ID, label(dotText, kind, name, "", nil))
	}
	for _, n := range g.Notes {
		d.note(n)
	}
	for _, b := range g.Boxes {
		for _, r := range b.Results {
			d.line("  %s [shape=box, style=\"filled,rounded\", fillcolor=\"#e9f7ec\", color=\"#2e7d43\", label=<%s>];",
				r.ID, label(dotText, "", r.Title(), "", r.Lines))
			d.line("  %s -> %s [style=dotted];", b.ID, r.ID)
		}
		for _, p := range b.parents {
			d.line("  %s -> %s [arrowhead=none];", p.ID, b.ID)
		}
	}
	if len(g.Pathless) > 0 {
		d.line("  none [shape=note, style=filled, fillcolor=\"#fff8dc\", color=\"#9a7b1c\", label=<%s>];", label(dotText, "", pathless, "", g.Pathless))
	}
	d.line("}")
	return d.String()
}

type dot struct{ strings.Builder }

func (d *dot) line(format string, args ...any) {
	fmt.Fprintf(d, format+"\n", args...)
}

func (d *dot) note(n *Note) {
	kind, name := n.Title()
	d.line("  %s [shape=note, style=filled, fillcolor=\"#fff8dc\", color=\"#9a7b1c\", label=<%s>];",
		n.ID, label(dotText, kind, name, n.Status, n.Lines))
	if n.On == nil {
		return
	}
	style := "penwidth=1"
	switch {
	case n.Overrides():
		style = "penwidth=4"
	case len(n.Blocks) == 0:
		style = "style=dashed"
	}
	d.line("  %s -> %s [%s, label=<%s>];", n.ID, n.On.ID, style, dotText(n.Relation()))
}

// dotText escapes a text for an HTML-like label, which must not be empty.
func dotText(text string) string {
	text = html.EscapeString(printable(shorten(text, maxText)))
	if text == "" {
		return " "
	}
	return text
}
