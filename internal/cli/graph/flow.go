package graph

import (
	"fmt"
	"strings"
)

// syntax is a language of pictures that other programs draw, in formats of fmt.
type syntax struct {
	text func(string) string // escapes a text
	// box, note and result are nodes, of an id and a label.
	box, note, result string
	// toBox and toResult lead from a box to another one and to a result, of their ids.
	toBox, toResult string
	// toTarget leads from a note to its box: of the id of the note, the style, the relation and
	// the id of the box.
	toTarget string
	// overrides, inactive and defaults are styles of toTarget.
	overrides, inactive, defaults string
}

// write returns the nodes and the lines of the picture.
func (g *Graph) write(s syntax) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, "  "+format+"\n", args...) }
	for _, b := range g.Boxes {
		kind, name := b.Title()
		line(s.box, b.ID, label(s.text, kind, name, "", nil))
	}
	for _, n := range g.Notes {
		kind, name := n.Title()
		line(s.note, n.ID, label(s.text, kind, name, n.Status, n.Lines))
		style := s.defaults
		switch {
		case n.Overrides():
			style = s.overrides
		case len(n.Blocks) == 0:
			style = s.inactive
		}
		if n.On != nil {
			line(s.toTarget, n.ID, style, s.text(n.Relation()), n.On.ID)
		}
	}
	for _, b := range g.Boxes {
		for _, r := range b.Results {
			line(s.result, r.ID, label(s.text, "", r.Title(), "", r.Lines))
			line(s.toResult, b.ID, r.ID)
		}
		for _, p := range b.parents {
			line(s.toBox, p.ID, b.ID)
		}
	}
	if len(g.Pathless) > 0 {
		line(s.note, "none", label(s.text, "", pathless, "", g.Pathless))
	}
	return out.String()
}
