// Command report prints what benchmarks measured (files, or standard input) as one
// table in Markdown, with the reference that was measured beside it and the limit.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// limits are those that Overrule promises, with the aim: of the ratio where there is a
// reference, else of the value. They are by the benchmark and the figure in the table.
var limits = map[string][2]float64{
	"RouteWrite/clients=1 p50": {1.25, 1}, "RoutePolicyWrite/clients=1 p50": {1.25, 1},
	"RouteWrite/clients=1 p99": {2, 1.5}, "RoutePolicyWrite/clients=1 p99": {2, 1.5},
	"GatewayPolicyWrite/own-policy op": {60e6, 25e6}, "GatewayPolicyWrite/own-policy-when op": {120e6, 25e6},
	"GatewayPolicyWrite/no-policy op": {10e6, 5e6}, "Effective/paths=5000 op": {25e6, 12e6},
	"NeighborWrite/no-policy op": {100e6, 10e6}, "NeighborWrite/override op": {100e6, 10e6},
	"Event/route op": {50e3, 20e3}, "Event/policy op": {50e3, 20e3},
	"Memory KiB/route": {6, 4}, "Memory KiB/policy": {6, 4},
	"Start time": {1.3, 0},
}

// times are the units that are shown as times, in nanoseconds, and what remains of
// the name of their metric.
var times = []struct {
	suffix, name string
	ns           float64
}{{"ns/op", "op", 1}, {"-µs", "", 1e3}, {"-ms", "", 1e6}, {"ms", "time", 1e6}}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// benchmark is what one has measured, by the metric in the order of its output.
type benchmark struct {
	name    string
	metrics []string
	values  map[string][]float64
}

// run prints the table of the results in all files.
func run(files []string, out io.Writer) error {
	all, err := read(files)
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintf(table, "| %s\t|\n", strings.Join(cells, "\t| ")) }
	row("operation", "measured", "reference", "ratio", "limit", "aim", "")
	row(slices.Repeat([]string{"---"}, 7)...)
	for _, b := range all {
		var others []string
		for _, metric := range b.metrics {
			if cells := b.row(metric); len(cells) == 1 {
				others = append(others, cells[0])
			} else if len(cells) > 1 {
				row(cells...)
			}
		}
		if len(others) > 0 {
			row(b.name, strings.Join(others, ", "), "", "", "", "", "")
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// read returns the benchmarks, and skips other lines.
func read(files []string) ([]*benchmark, error) {
	var out []*benchmark
	reader := benchfmt.Files{Paths: files, AllowStdin: true}
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, record
		case *benchfmt.Result:
			name := record.Name.String()
			if i := strings.LastIndexByte(name, '-'); i >= 0 {
				if _, err := strconv.Atoi(name[i+1:]); err == nil { // the number of CPUs
					name = name[:i]
				}
			}
			at := slices.IndexFunc(out, func(b *benchmark) bool { return b.name == name })
			if at < 0 {
				at, out = len(out), append(out, &benchmark{name: name, values: make(map[string][]float64)})
			}
			for _, v := range record.Values {
				unit, value := v.Unit, v.Value
				if v.OrigUnit != "" { // as printed: a limit may be met to the digit
					unit, value = v.OrigUnit, v.OrigValue
				}
				if b := out[at]; b.values[unit] == nil {
					b.metrics = append(b.metrics, unit)
				}
				out[at].values[unit] = append(out[at].values[unit], value)
			}
		}
	}
	return out, reader.Err()
}

// row returns the cells of a metric with a reference or a limit, one cell of any other,
// and none of a reference itself.
func (b *benchmark) row(metric string) []string {
	of, ours := strings.CutPrefix(metric, "overrule-")
	reference := ""
	for _, prefix := range []string{"nothing-", "informer-"} {
		if other, is := strings.CutPrefix(metric, prefix); is && b.values["overrule-"+other] != nil {
			return nil
		}
		if ours && b.values[prefix+of] != nil {
			reference = prefix + of
		}
	}
	isRound := metric == "ns/op" && slices.ContainsFunc(b.metrics, func(m string) bool { return strings.HasPrefix(m, "overrule-") })
	if isRound || metric == "B/op" || metric == "allocs/op" {
		return nil
	}
	figure, text, value := b.show(metric)
	limit, limited := limits[b.name+" "+figure]
	if reference == "" && !limited {
		return []string{figure + " " + text}
	}
	format := func(v float64) string { _, text := shown(metric, v); return text }
	cells := []string{b.name + " " + figure, text, "", ""}
	if reference != "" {
		_, cells[2], _ = b.show(reference)
		value /= median(b.values[reference])
		format = func(v float64) string { return number(v) + " ×" }
		cells[3] = format(value)
	}
	if !limited {
		return append(cells, "", "", "")
	}
	verdict := "**not met**"
	switch {
	case value <= limit[1]:
		verdict = "aim met"
	case value <= limit[0]:
		verdict = "met"
	}
	aim := ""
	if limit[1] > 0 {
		aim = format(limit[1])
	}
	return append(cells, format(limit[0]), aim, verdict)
}

// show returns the name, the text and the value of a metric: its median.
func (b *benchmark) show(metric string) (figure, text string, value float64) {
	value = median(b.values[metric])
	figure, text = shown(strings.TrimPrefix(metric, "overrule-"), value)
	return figure, text, value
}

func median(values []float64) float64 {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95).Center
}

func shown(metric string, v float64) (figure, text string) {
	for _, unit := range times {
		if name, is := strings.CutSuffix(metric, unit.suffix); is {
			return name + unit.name, duration(v * unit.ns)
		}
	}
	return metric, number(v)
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

// duration formats nanoseconds in the unit with the fewest digits.
func duration(ns float64) string {
	switch {
	case ns >= 1e9:
		return number(ns/1e9) + " s"
	case ns >= 1e6:
		return number(ns/1e6) + " ms"
	default:
		return number(ns/1e3) + " µs"
	}
}
