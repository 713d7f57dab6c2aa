package main

import (
	"encoding/xml"
	"fmt"
	"io"

	"golang.org/x/perf/benchfmt"
)

// Sizes in pixels. The panels stand in two columns.
const (
	panelWidth, panelHeight = 460, 330
	columns                 = 2
	marginLeft, marginRight = 75, 35
	marginTop, marginBottom = 92, 50
	legendTop, legendLine   = 44, 16
	titleTop                = 24
)

// The background is drawn: a page may be dark, and the curves are not made for
// that.
const (
	background = "#ffffff"
	ink        = "#1f2328"
	faint      = "#d8dee4"
)

const description = "Both axes are logarithmic. A level curve does not grow with the number of routes; " +
	"one that climbs a decade per decade grows in proportion."

// drawCurves draws the results of BenchmarkGrowth as an SVG picture: a panel
// each for a write, an event, memory and the start, over the number of routes.
// The same results give the same bytes. The error tells which result cannot be
// drawn, or that there is none.
func drawCurves(w io.Writer, results []*benchfmt.Result) error {
	all, err := fill(results)
	if err != nil {
		return fmt.Errorf("draw the curves: %w", err)
	}
	width, height := columns*panelWidth, (len(all)+columns-1)/columns*panelHeight
	p := svgPicture{
		Space: "http://www.w3.org/2000/svg", ViewBox: fmt.Sprintf("0 0 %d %d", width, height),
		Width: px(width), Height: px(height), Role: "img", Font: "system-ui, sans-serif", Size: 12,
		Title: "Cost by the number of routes", Desc: description,
		Parts: []any{svgRect{Width: px(width), Height: px(height), Fill: background}},
	}
	for i := range all {
		p.Parts = append(p.Parts, all[i].draw(float64(i%columns*panelWidth), float64(i/columns*panelHeight))...)
	}
	text, err := xml.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("draw the curves: %w", err)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the curves: %w", err)
	}
	return nil
}

// draw returns the elements of a panel whose upper left corner is there.
func (p *panel) draw(x, y float64) []any {
	out := []any{svgText{X: px(x + marginLeft), Y: px(y + titleTop), Fill: ink, Weight: "bold", Text: p.title}}
	var routes, values []float64
	for i := range p.curves {
		for _, at := range p.curves[i].points {
			routes, values = append(routes, at.routes), append(values, at.value)
		}
	}
	if len(values) == 0 {
		return append(out, svgText{X: px(x + panelWidth/2), Y: px(y + panelHeight/2), Fill: ink, Anchor: "middle", Text: "not measured"})
	}
	across := axisOver(routes, x+marginLeft, x+panelWidth-marginRight)
	up := axisOver(values, y+panelHeight-marginBottom, y+marginTop)
	out = append(out, grid(across, up, p.unit)...)
	for i := range p.curves {
		legend := y + legendTop + float64(i*legendLine)
		out = append(out, p.curves[i].draw(looks[i%len(looks)], across, up, p.unit, legend)...)
	}
	return out
}

// grid draws a line and its value for each decade of both axes.
func grid(across, up axis, u unit) []any {
	var out []any
	for _, v := range across.decades() {
		at := across.at(v)
		out = append(out,
			svgLine{X1: px(at), Y1: px(up.from), X2: px(at), Y2: px(up.to), Stroke: faint},
			svgText{X: px(at), Y: px(up.from + 18), Fill: ink, Anchor: "middle", Text: count(v)})
	}
	for _, v := range up.decades() {
		at := up.at(v)
		out = append(out,
			svgLine{X1: px(across.from), Y1: px(at), X2: px(across.to), Y2: px(at), Stroke: faint},
			svgText{X: px(across.from - 8), Y: px(at + 4), Fill: ink, Anchor: "end", Text: u(v)})
	}
	return append(out, svgText{X: px((across.from + across.to) / 2), Y: px(up.from + 38), Fill: ink, Anchor: "middle", Text: "routes"})
}

// draw returns a curve and its line in the legend, which says where the curve
// ends.
func (c *curve) draw(l look, across, up axis, u unit, legend float64) []any {
	label := c.label + ": not measured"
	if n := len(c.points); n > 0 {
		label = fmt.Sprintf("%s: %s to %s", c.label, u(c.points[0].value), u(c.points[n-1].value))
	}
	out := []any{
		l.at(across.from+5, legend-4, ""),
		svgText{X: px(across.from + 16), Y: px(legend), Fill: ink, Text: label},
	}
	line := svgPolyline{Fill: "none", Stroke: l.colour, Width: 2}
	var marks []any
	for _, p := range c.points {
		x, y := across.at(p.routes), up.at(p.value)
		line.Points = append(line.Points, [2]float64{x, y})
		marks = append(marks, l.at(x, y, fmt.Sprintf("%s routes: %s", count(p.routes), u(p.value))))
	}
	return append(append(out, line), marks...)
}
