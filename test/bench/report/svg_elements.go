package main

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// The elements of SVG that a picture is made of.

type svgPicture struct {
	XMLName xml.Name `xml:"svg"`
	Space   string   `xml:"xmlns,attr"`
	ViewBox string   `xml:"viewBox,attr"`
	Width   px       `xml:"width,attr"`
	Height  px       `xml:"height,attr"`
	Role    string   `xml:"role,attr"`
	Font    string   `xml:"font-family,attr"`
	Size    px       `xml:"font-size,attr"`
	Title   string   `xml:"title"`
	Desc    string   `xml:"desc"`
	Parts   []any
}

type svgRect struct {
	XMLName xml.Name `xml:"rect"`
	X       px       `xml:"x,attr"`
	Y       px       `xml:"y,attr"`
	Width   px       `xml:"width,attr"`
	Height  px       `xml:"height,attr"`
	Fill    string   `xml:"fill,attr"`
}

type svgLine struct {
	XMLName xml.Name `xml:"line"`
	X1      px       `xml:"x1,attr"`
	Y1      px       `xml:"y1,attr"`
	X2      px       `xml:"x2,attr"`
	Y2      px       `xml:"y2,attr"`
	Stroke  string   `xml:"stroke,attr"`
}

type svgText struct {
	XMLName xml.Name `xml:"text"`
	X       px       `xml:"x,attr"`
	Y       px       `xml:"y,attr"`
	Fill    string   `xml:"fill,attr"`
	Anchor  string   `xml:"text-anchor,attr,omitempty"`
	Weight  string   `xml:"font-weight,attr,omitempty"`
	Text    string   `xml:",chardata"`
}

type svgPolyline struct {
	XMLName xml.Name `xml:"polyline"`
	Points  points   `xml:"points,attr"`
	Fill    string   `xml:"fill,attr"`
	Stroke  string   `xml:"stroke,attr"`
	Width   px       `xml:"stroke-width,attr"`
}

// svgMark is a point of a curve; its title is what a browser shows over it.
type svgMark struct {
	XMLName xml.Name `xml:"path"`
	D       string   `xml:"d,attr"`
	Fill    string   `xml:"fill,attr"`
	Title   string   `xml:"title,omitempty"`
}

// px is a length, written to a tenth of a pixel: the same on every machine.
type px float64

// MarshalText implements encoding.TextMarshaler.
func (p px) MarshalText() ([]byte, error) {
	return []byte(strings.TrimSuffix(strconv.FormatFloat(float64(p), 'f', 1, 64), ".0")), nil
}

type points [][2]float64

// MarshalText implements encoding.TextMarshaler.
func (p points) MarshalText() ([]byte, error) {
	parts := make([]string, len(p))
	for i, at := range p {
		parts[i] = fmt.Sprintf("%.1f,%.1f", at[0], at[1])
	}
	return []byte(strings.Join(parts, " ")), nil
}

// look is how a curve is told from others, by colour and by shape: not
// everyone sees the colours.
type look struct {
	colour string
	// mark is the outline of its points around 0,0.
	mark string
}

// The colours are those of Okabe and Ito, which colour-blind people can tell
// apart.
var looks = []look{
	{colour: "#0072b2", mark: "m-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z"},
	{colour: "#d55e00", mark: "m-3.5,-3.5h7v7h-7z"},
	{colour: "#00795a", mark: "m0,-5l5,5l-5,5l-5,-5z"},
}

func (l look) at(x, y float64, title string) svgMark {
	return svgMark{D: fmt.Sprintf("M%.1f,%.1f%s", x, y, l.mark), Fill: l.colour, Title: title}
}
