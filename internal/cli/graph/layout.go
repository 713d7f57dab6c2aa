package graph

import "unicode/utf8"

// Sizes of the SVG, in pixels.
const (
	lineHeight   = 17
	padding      = 9
	gap          = 14 // between boxes
	noteGap      = 12 // between a note and the next one or its box
	laneGap      = 76
	linesWidth   = 34 // of the lines of notes, left of a lane
	margin       = 24
	leftMargin   = 48 // with room for the lines of notes
	headerHeight = 34
	charWidth    = 7.3 // of the monospaced font at 12 pixels, rounded up
	minWidth     = 120
	maxChars     = 64
	maxRows      = 4
)

// rect is a rectangle with rows of text.
type rect struct {
	x, y, w, h float64
	rows       []row
}

// row is a line of text.
type row struct {
	text, class string
	lost        bool
}

// layout places the boxes of a Graph: a lane for each column, and below each other
// what belongs to one parent, so that no box covers another.
type layout struct {
	*Graph
	columns []lane           // those that have a box
	x, w    [lanes]float64   // of the lanes
	rects   map[string]*rect // by id
	height  float64
	width   float64
}

func (g *Graph) layout() *layout {
	l := &layout{Graph: g, rects: make(map[string]*rect)}
	var present [lanes]bool
	for _, b := range g.Boxes {
		l.measure(b, &present)
	}
	l.width = leftMargin
	for c := range lanes {
		if present[c] {
			l.columns = append(l.columns, c)
			l.x[c] = l.width
			l.width += l.w[c] + laneGap
		}
	}
	l.width += margin - laneGap
	y := float64(margin + headerHeight)
	for _, b := range g.roots {
		y = l.place(b, y) + gap
	}
	l.height = y
	return l
}

func (l *layout) measure(b *Box, present *[lanes]bool) {
	kind, name := b.Title()
	l.add(b.lane, b.ID, []row{{text: kind, class: "kind"}, {text: name, class: "name"}})
	present[b.lane] = true
	for _, n := range b.notes {
		l.add(b.lane, n.ID, n.rows())
	}
	for _, r := range b.Results {
		l.add(laneResult, r.ID, r.rows())
		present[laneResult] = true
	}
}

func (l *layout) add(c lane, id string, rows []row) {
	r := &rect{w: minWidth, h: float64(len(rows))*lineHeight + 2*padding, rows: rows}
	for _, row := range rows {
		r.w = max(r.w, float64(utf8.RuneCountInString(row.text))*charWidth+2*padding)
	}
	l.rects[id] = r
	l.w[c] = max(l.w[c], r.w)
}

// place places a box with its notes, and to the right of it what is below it, from a
// height on. It returns the height at which it ends.
func (l *layout) place(b *Box, top float64) float64 {
	below := top
	for _, r := range b.Results {
		below = l.put(laneResult, r.ID, below) + gap
	}
	for _, child := range b.children {
		below = l.place(child, below) + gap
	}
	below = max(below-gap, top)
	own := l.rects[b.ID].h
	for _, n := range b.notes {
		own += l.rects[n.ID].h + noteGap
	}
	y := top + max(0, (below-top-own)/2)
	for _, n := range b.notes {
		y = l.put(b.lane, n.ID, y) + noteGap
	}
	return max(below, l.put(b.lane, b.ID, y))
}

// put places a rectangle in a lane, and returns the height at which it ends.
func (l *layout) put(c lane, id string, y float64) float64 {
	r := l.rects[id]
	r.x, r.y, r.w = l.x[c], y, l.w[c]
	return y + r.h
}

func (n *Note) rows() []row {
	kind, name := n.Title()
	rows := []row{{text: kind + ": " + n.Relation(), class: "kind"}, {text: name, class: "name"}}
	for _, text := range wrap(n.Status, maxChars, maxRows) {
		rows = append(rows, row{text: text, class: "status"})
	}
	return appendLines(rows, n.Lines)
}

func (r *Result) rows() []row {
	rows := []row{{text: r.Title(), class: "name"}}
	return appendLines(rows, r.Lines)
}

func appendLines(rows []row, lines []Line) []row {
	for _, line := range lines {
		for _, text := range wrap(line.Text, maxChars, maxRows) {
			rows = append(rows, row{text: text, class: "rule", lost: line.Lost})
		}
		for _, text := range wrap(line.Comment, maxChars, maxRows) {
			rows = append(rows, row{text: "  " + text, class: "comment"})
		}
	}
	return rows
}

// wrap splits a text into rows of at most that many characters, between words if there are any,
// and cuts the last one.
func wrap(text string, chars, rows int) []string {
	var out []string
	rest := []rune(printable(text))
	for len(rest) > chars && len(out) < rows-1 {
		end := chars
		for i := end; i > chars/2; i-- {
			if rest[i] == ' ' {
				end = i
				break
			}
		}
		out = append(out, string(rest[:end]))
		rest = rest[end:]
		if rest[0] == ' ' {
			rest = rest[1:]
		}
	}
	if len(rest) == 0 {
		return out
	}
	return append(out, shorten(string(rest), chars))
}
