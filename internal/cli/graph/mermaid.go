package graph

import (
	"fmt"
	"strings"
)

// The limits of GitHub, beyond which it shows an error in place of a picture.
const (
	mermaidEdges      = 500
	mermaidCharacters = 50_000
)

// FitsMermaid reports whether the picture is within the limits of GitHub.
func FitsMermaid(g *Graph) bool {
	return g.edges < mermaidEdges && len(g.Mermaid()) < mermaidCharacters
}

// Mermaid returns the picture as a Mermaid flowchart.
func (g *Graph) Mermaid() string {
	var m mermaid
	m.line(`%%%%{init: {"flowchart": {"wrappingWidth": 420}}}%%%%`)
	m.line("flowchart LR")
	for _, b := range g.Boxes {
		kind, name := b.Title()
		m.line("  %s[\"%s\"]:::target", b.ID, label(mermaidText, kind, name, "", nil))
	}
	for _, n := range g.Notes {
		m.note(n)
	}
	for _, b := range g.Boxes {
		for _, r := range b.Results {
			m.line("  %s(\"%s\"):::effective", r.ID, label(mermaidText, "", r.Title(), "", r.Lines))
			m.line("  %s -.-> %s", b.ID, r.ID)
		}
		for _, p := range b.parents {
			m.line("  %s --- %s", p.ID, b.ID)
		}
	}
	if len(g.Pathless) > 0 {
		m.line("  none>\"%s\"]:::note", label(mermaidText, "", pathless, "", g.Pathless))
	}
	m.line("  legend[\"%s\"]:::legend", strings.Join(g.legend(mermaidText), "<br/>"))
	m.line("  classDef target fill:#eef4ff,stroke:#3b6fb6,color:#10233f")
	m.line("  classDef note fill:#fff8dc,stroke:#9a7b1c,color:#3a2f0b")
	m.line("  classDef effective fill:#e9f7ec,stroke:#2e7d43,color:#0f2f18")
	m.line("  classDef legend fill:none,stroke:#888,stroke-dasharray:3 3")
	return m.String()
}

type mermaid struct{ strings.Builder }

func (m *mermaid) line(format string, args ...any) {
	fmt.Fprintf(m, format+"\n", args...)
}

func (m *mermaid) note(n *Note) {
	kind, name := n.Title()
	m.line("  %s>\"%s\"]:::note", n.ID, label(mermaidText, kind, name, n.Status, n.Lines))
	if n.On == nil {
		return
	}
	link := "-->"
	switch {
	case n.Overrides():
		link = "==>"
	case len(n.Blocks) == 0:
		link = "-.->"
	}
	m.line("  %s %s|%s| %s", n.ID, link, mermaidText(n.Relation()), n.On.ID)
}

// mermaidText writes all characters but letters, digits and a few others as entities
// of Mermaid, so that no text is read as syntax, HTML or Markdown.
func mermaidText(text string) string {
	var out strings.Builder
	for _, r := range shorten(text, maxText) {
		switch {
		case r < ' ' || r == 0x7f:
			out.WriteByte(' ')
		case r == '\\':
			out.WriteString("#92;#8203;") // \n would be a line break, also as entities
		case r < 0x80 && strings.ContainsRune("\"#&<>`*_|[]{};$%~'", r):
			fmt.Fprintf(&out, "#%d;", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
