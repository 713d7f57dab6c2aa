package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const unmeasured = "not measured"

// writeTables writes the measured values as Markdown: one row for each limit, then
// the latencies, then everything else. The first two tables have a row "not
// measured" for each missing value; the other tables leave it out.
func writeTables(w io.Writer, f figures) error {
	var out bytes.Buffer
	table{"what", "limit", "aim", "measured", "reference", ""}.write(&out, f.limits())
	fmt.Fprint(&out, "\nReference: the webhook that does nothing, and in the last row a bare informer, in the same run.\n")
	fmt.Fprint(&out, "\nLatency of a review, by how many clients send them:\n\n")
	table{"write", "clients", "webhook", "p50", "p99", "p99.9"}.write(&out, f.latencies())
	if rows := f.applied(); len(rows) > 0 {
		fmt.Fprint(&out, "\nA write of a route through a real API server, by the webhooks that it calls:\n\n")
		table{"write", "webhooks", "p50", "p99", "added (median)"}.write(&out, rows)
	}
	if rows := f.others(); len(rows) > 0 {
		fmt.Fprint(&out, "\nBeside these:\n\n")
		table{"what", "measured"}.write(&out, rows)
	}
	if rows := f.heavy(); len(rows) > 0 {
		fmt.Fprint(&out, "\nBad input at full size, by its name in test/heavy:\n\n")
		table{"what", "answer", "after", "evaluation time", "mutating webhook", "heap"}.write(&out, rows)
	}
	for _, m := range f.machine {
		fmt.Fprintf(&out, "\nMeasured on %s.\n", m)
	}
	if _, err := out.WriteTo(w); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// table is the head of a Markdown table.
type table []string

// write pads cells, so that the table can be read on a terminal, too.
func (t table) write(out *bytes.Buffer, rows [][]string) {
	widths := make([]int, len(t))
	for _, row := range append([][]string{t}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			fmt.Fprintf(out, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		out.WriteString("|\n")
	}
	line(t)
	for _, n := range widths {
		out.WriteString("|" + strings.Repeat("-", n+2))
	}
	out.WriteString("|\n")
	for _, row := range rows {
		line(row)
	}
}

// number formats a value with three significant digits, or all digits before the
// point.
func number(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// bound formats a limit without trailing zeros.
func bound(v float64, format func(float64) string) string {
	digits, unit, _ := strings.Cut(format(v), " ")
	if strings.Contains(digits, ".") {
		digits = strings.TrimRight(strings.TrimRight(digits, "0"), ".")
	}
	return digits + " " + unit
}

func ratio(v float64) string { return number(v) + " ×" }

func kibibytes(v float64) string { return number(v) + " KiB" }

func mebibytes(v float64) string { return number(v) + " MiB" }

func micros(v float64) string { return nanos(v * 1e3) }

func millis(v float64) string { return nanos(v * 1e6) }

// nanos formats nanoseconds in the unit with the fewest digits.
func nanos(v float64) string {
	switch {
	case v >= 1e9:
		return number(v/1e9) + " s"
	case v >= 1e6:
		return number(v/1e6) + " ms"
	default:
		return number(v/1e3) + " µs"
	}
}
