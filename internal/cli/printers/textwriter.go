package printers

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// style is an ANSI style. All codes have two digits, so that a style adds the same
// width to every cell of a table (see wrap).
type style string

const (
	plain  style = ""
	bold   style = "01"
	dim    style = "02"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// textWriter collects human-readable output.
type textWriter struct {
	text  strings.Builder
	err   error
	color bool
	tree  bool // in the format Tree
}

// codes are those of the styles.
var codes = regexp.MustCompile(`\x1b\[\d+m`)

// paint returns a text in a style, whose codes a writer without colors removes. Control
// characters, which could move the cursor, are replaced by spaces: names and values come from
// users.
func paint(s style, text string) string {
	if s == plain || text == "" {
		return OneLine(text)
	}
	return wrap(s, text)
}

// wrap returns a text in a style, with codes even if it is plain or empty: the
// columns of a table are aligned by the length of their cells, codes included.
func wrap(s style, text string) string {
	return "\x1b[" + cmp.Or(string(s), "00") + "m" + OneLine(text) + "\x1b[0m"
}

// OneLine replaces line breaks and control characters by spaces.
func OneLine(text string) string {
	text = strings.ReplaceAll(text, "\r\n", " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}

// line writes a line of styled pieces.
func (w *textWriter) line(pieces ...string) {
	text := strings.Join(pieces, "")
	if !w.color {
		text = codes.ReplaceAllString(text, "")
	}
	w.text.WriteString(strings.TrimRight(text, " "))
	w.text.WriteByte('\n')
}

// blankLine writes an empty line, except at the top.
func (w *textWriter) blankLine() {
	if w.text.Len() > 0 {
		w.text.WriteByte('\n')
	}
}

// cell is a cell of a table.
type cell struct {
	text  string
	style style
}

func plainCell(s string) cell { return cell{text: s} }

// table writes a table below a blank line, aligned as kubectl does; nothing without rows.
func (w *textWriter) table(header []string, rows [][]cell) {
	if len(rows) == 0 {
		return
	}
	w.blankLine()
	head := make([]cell, len(header))
	for i, h := range header {
		head[i] = cell{h, bold}
	}
	out := printers.GetNewTabWriter(&w.text)
	for _, row := range append([][]cell{head}, rows...) {
		pieces := make([]string, len(row))
		for i, c := range row {
			if pieces[i] = OneLine(c.text); w.color {
				pieces[i] = wrap(c.style, c.text)
			}
		}
		_, _ = fmt.Fprintln(out, strings.Join(pieces, "\t")) // a strings.Builder does not fail
	}
	_ = out.Flush()
}

// Compact returns a value as JSON on one line.
func Compact(v any) string {
	data, err := decode.Encode(v, "")
	if err != nil {
		return "?"
	}
	return string(data)
}

// Cut shortens a text to a number of characters, with an ellipsis at the end.
func Cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// Lines returns a value as one line of JSON, or as YAML if that would be longer
// than most.
func Lines(v any, most int) []string {
	if s := Compact(v); utf8.RuneCountInString(s) <= most {
		return []string{s}
	}
	data, err := yaml.Marshal(v)
	if err != nil {
		return []string{Compact(v)}
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func elementName(e api.PathElement) string {
	if e.IsSection() {
		return e.Kind + " " + e.SectionText()
	}
	return e.String()
}

func stateStyle(s api.State) style {
	switch s {
	case api.Enforced:
		return green
	case api.PartiallyEnforced, api.Inactive, api.NoPath, api.Unreached:
		return yellow
	default:
		return red
	}
}

// policyName returns a policy with the block.
func policyName(policy api.Ref, block string) string {
	if block == "" || block == "bare" {
		return policy.Key()
	}
	return policy.Key() + " (" + block + ")"
}
