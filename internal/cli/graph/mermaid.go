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

var mermaid = syntax{
	text:      mermaidText,
	box:       `%s["%s"]:::target`,
	note:      `%s>"%s"]:::note`,
	result:    `%s("%s"):::effective`,
	toBox:     "%s --- %s",
	toResult:  "%s -.-> %s",
	toTarget:  "%s %s|%s| %s",
	overrides: "==>", inactive: "-.->", defaults: "-->",
}

// Mermaid returns the picture as a Mermaid flowchart.
func (g *Graph) Mermaid() string {
	return `%%{init: {"flowchart": {"wrappingWidth": 420}}}%%
flowchart LR
` + g.write(mermaid) + `  legend["` + strings.Join(g.legend(mermaidText), "<br/>") + `"]:::legend
  classDef target fill:#eef4ff,stroke:#3b6fb6,color:#10233f
  classDef note fill:#fff8dc,stroke:#9a7b1c,color:#3a2f0b
  classDef effective fill:#e9f7ec,stroke:#2e7d43,color:#0f2f18
  classDef legend fill:none,stroke:#888,stroke-dasharray:3 3
`
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
