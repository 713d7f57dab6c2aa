package graph

import (
	"strconv"
	"strings"
)

// countOf returns the kind, with a number before its plural if there are several.
func countOf(kind string, n int) string {
	if n <= 1 {
		return kind
	}
	switch {
	case strings.HasSuffix(kind, "y") && !strings.HasSuffix(kind, "ay"):
		kind = strings.TrimSuffix(kind, "y") + "ies"
	case strings.HasSuffix(kind, "s"), strings.HasSuffix(kind, "x"):
		kind += "es"
	default:
		kind += "s"
	}
	return number(n) + " " + kind
}

// number returns a number with separators between its thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// maxExamples is the number of names that stand for more.
const maxExamples = 3

// examples returns the first names, and the number of the others.
func examples[T any](items []T, name func(T) string) string {
	var names []string
	for i := range min(len(items), maxExamples) {
		names = append(names, name(items[i]))
	}
	text := strings.Join(names, ", ")
	if more := len(items) - len(names); more > 0 {
		text += " and " + number(more) + " more"
	}
	return text
}

// onPaths returns on how many of the paths something is so; empty if on all.
func onPaths(n, total int) string {
	if n == total {
		return ""
	}
	return " on " + number(n) + " of " + number(total) + " paths"
}

// shorten cuts a text to a number of characters.
func shorten(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// maxText is the number of characters after which a text in a picture is cut.
const maxText = 120

// printable replaces characters that no format allows.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// legend explains the picture.
func (g *Graph) legend(escape func(string) string) []string {
	var out []string
	for _, text := range []string{
		"Line from a policy: thick for overrides, thin for defaults or rules that are neither, dashed if it does not apply.",
		"Line to a green box: what is in effect.",
		"Struck through: has no effect, replaced by the policy that is named, or removed by the change.",
		g.Collapsed,
	} {
		for _, row := range wrap(text, maxText, len(text)) {
			out = append(out, escape(row))
		}
	}
	return out
}

// pathless is the heading of the policies that are on no path.
const pathless = "On no path"

// label returns the label of a node, in the HTML that both Mermaid and Graphviz read.
// Without a kind the name is the heading.
func label(escape func(string) string, kind, name, status string, lines []Line) string {
	rows := []string{"<b>" + escape(name) + "</b>"}
	if kind != "" {
		rows = append([]string{escape(kind)}, rows...)
	}
	if status != "" {
		rows = append(rows, "<i>"+escape(status)+"</i>")
	}
	for _, l := range lines {
		text := escape(l.Text)
		if l.Lost {
			text = "<s>" + text + "</s>"
		}
		if l.Comment != "" {
			text += " – " + escape(l.Comment)
		}
		rows = append(rows, text)
	}
	return strings.Join(rows, "<br/>")
}
