package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// printTable prints all figures beside those of the baseline.
func printTable(out io.Writer, was, now baseline, measures []string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCENARIO\tMEASURE\tBASELINE\tNOW\t")
	for _, name := range slices.Sorted(maps.Keys(now.Costs)) {
		for _, measure := range measures {
			is, ok := now.Costs[name][measure]
			if !ok {
				continue
			}
			before, note := "-", ""
			if n, ok := was.Costs[name][measure]; ok {
				before, note = fmt.Sprint(n), times(is, n)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", name, measure, before, is, note)
		}
	}
	_ = w.Flush() // out is a terminal or a log, and the verdict is what counts
}

// law says that one scenario does not cost more than another: what a write
// costs does not grow with what it does not touch.
type law struct{ among, fewer string }

// deepens is how much more an operation may cost among ten times as many
// objects: the trees are a level deeper, and their nodes fuller. Looking at each
// of them would cost ten times as much.
const deepens = 1.5

// broken tells where the law does not hold, "" if it does.
func (l law) broken(now baseline, measures []string) string {
	for _, measure := range measures {
		many, ok := now.Costs[l.among][measure]
		few, also := now.Costs[l.fewer][measure]
		if ok && also && float64(many) > deepens*float64(few) {
			return fmt.Sprintf("%s: %s: %d, and %d for %s: what it costs grows with what it does not touch",
				l.among, measure, many, few, l.fewer)
		}
	}
	return ""
}
