package graph

import (
	_ "embed" // the stylesheet
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Link returns the address that a box or a note leads to, for an object that it shows
// alone; empty for none.
type Link func(kind, namespace, name string) string

// SVG returns the picture as an SVG document. Its colors follow the color scheme of
// the reader. The link may be nil.
func (g *Graph) SVG(link Link) string {
	l := g.layout()
	s := &svg{layout: l, link: link}
	legend := g.legend(func(text string) string { return text })
	others := appendLines(nil, g.Pathless)
	height := l.height + float64(len(legend)*lineHeight+2*margin)
	if len(others) > 0 {
		height += float64(len(others)+1)*lineHeight + gap
	}
	width := max(l.width, maxText*charWidth*0.92+2*margin)
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-labelledby="title desc" class="overrule">`, width, height, width, height)
	s.printf("<title id=\"title\">Effective policies</title><desc id=\"desc\">%s</desc>", escape(g.description()))
	s.printf("<style>\n%s</style>", style)
	s.printf(`<rect class="page" width="%.0f" height="%.0f"/>`, width, height)
	titles := laneTitles()
	for _, c := range l.columns {
		s.printf(`<text class="lane" x="%.1f" y="%d">%s</text>`, l.x[c], margin+lineHeight, escape(titles[c]))
	}
	for _, b := range g.Boxes {
		s.edges(b)
	}
	for _, b := range g.Boxes {
		s.box(b)
	}
	y := l.height + margin
	if len(others) > 0 {
		y = s.rows(margin, y, append([]row{{text: pathless, class: "name"}}, others...)) + gap
	}
	for _, text := range legend {
		y = s.rows(margin, y, []row{{text: text, class: "legend"}})
	}
	s.printf("</svg>\n")
	return s.String()
}

type svg struct {
	strings.Builder
	*layout
	link Link
}

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// edges draws the lines to what is below a box.
func (s *svg) edges(b *Box) {
	from := s.rects[b.ID]
	for _, child := range append(slices.Clip(b.children), b.links...) {
		to := s.rects[child.ID]
		s.curve(from, to, "edge", to.h-padding)
	}
	for _, r := range b.Results {
		to := s.rects[r.ID]
		s.curve(from, to, "edge result", to.h/2)
	}
}

func (s *svg) curve(from, to *rect, class string, height float64) {
	x1, y1, x2, y2 := from.x+from.w, from.y+from.h/2, to.x, to.y+height
	// Close to the end, since the boxes of a parent are at the height of its own, but
	// left of the lines of notes.
	start, end := max(x1, x2-laneGap), x2-linesWidth
	bend := (start + end) / 2
	s.printf(`<path class="%s" d="M%.1f %.1fH%.1fC%.1f %.1f %.1f %.1f %.1f %.1fH%.1f"/>`, class, x1, y1, start, bend, y1, bend, y2, end, y2, x2)
}

func (s *svg) box(b *Box) {
	target := s.rects[b.ID]
	kind, name := b.Title()
	object := ""
	if len(b.Members) == 1 {
		e := b.Members[0]
		object = s.address(objectKind(e.Kind), e.Namespace, e.Name)
	}
	for i, n := range b.notes {
		s.note(n, target, len(b.notes)-1-i)
	}
	s.shape("target", b.ID, kind+" "+name, object, target)
	for _, r := range b.Results {
		s.shape("effective", r.ID, r.Title(), "", s.rects[r.ID])
	}
}

// note draws a note, and the line from it around the notes below it, of which there
// are some, to its target.
func (s *svg) note(n *Note, to *rect, below int) {
	from := s.rects[n.ID]
	class := "defaults"
	switch {
	case n.Overrides():
		class = "overrides"
	case len(n.Blocks) == 0:
		class = "inactive"
	}
	below = min(below, 2)
	x, y := from.x-12-9*float64(below), to.y+9+9*float64(below)
	s.printf(`<path class="%s" d="M%.1f %.1fH%.1fV%.1fH%.1f"/>`, class, from.x, from.y+from.h/2, x, y, to.x-4)
	s.printf(`<path class="tip" d="M%.1f %.1fl-7 -5v10z"/>`, to.x, y)
	kind, name := n.Title()
	address := ""
	if len(n.Policies) == 1 {
		p := n.Policies[0]
		address = s.address(p.Kind, p.Namespace, p.Name)
	}
	s.shape("note "+class, n.ID, kind+" "+name+", "+n.Relation(), address, from)
}

func (s *svg) address(kind, namespace, name string) string {
	if s.link == nil || kind == "" {
		return ""
	}
	return s.link(kind, namespace, name)
}

// shape draws a rectangle with its text.
func (s *svg) shape(class, id, title, address string, r *rect) {
	if address != "" {
		s.printf(`<a href="%s">`, escape(address))
	}
	s.printf(`<g class="%s" id="%s"><title>%s</title>`, class, id, escape(title))
	radius := 3
	if class == "effective" {
		radius = 12
	}
	s.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%d"/>`, r.x, r.y, r.w, r.h, radius)
	s.rows(r.x+padding, r.y+padding, r.rows)
	s.printf("</g>")
	if address != "" {
		s.printf("</a>")
	}
	s.printf("\n")
}

// rows writes rows of text from a height on, and returns the height below them.
func (s *svg) rows(x, y float64, rows []row) float64 {
	for _, r := range rows {
		y += lineHeight
		class := r.class
		if r.lost {
			class += " lost"
		}
		s.printf(`<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y-4, escape(r.text))
	}
	return y
}

func escape(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(printable(text))) // a strings.Builder never fails
	return out.String()
}

// objectKind returns the kind of the object that an element belongs to, empty for a
// listener, which may be of a Gateway or a ListenerSet.
func objectKind(kind string) string {
	if kind == "Listener" {
		return ""
	}
	if route, ok := strings.CutSuffix(kind, "Rule"); ok && isRoute(api.PathElement{Kind: route}) {
		return route
	}
	return kind
}

// description says in words what the picture shows.
func (g *Graph) description() string {
	objects, policies := 0, make(map[api.Ref]bool)
	for _, b := range g.Boxes {
		objects += len(b.Members)
	}
	for _, n := range g.Notes {
		for _, p := range n.Policies {
			policies[p] = true
		}
	}
	return countOf("path", g.Paths) + ", " + countOf("object", objects) + ", " + countOf("policy", len(policies)) + ". " + g.Collapsed
}

// style is the stylesheet of the picture.
//
//go:embed svg.css
var style string
