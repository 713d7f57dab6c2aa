package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Measures, each per operation or object.
const (
	allocations = "allocations"
	bytesUsed   = "bytes"
	heap        = "heap bytes"
	statements  = "statements"
)

// A cost may grow to tooMuch times its baseline. The figures of one binary
// differ by less than two in a hundred from run to run, and a feature may cost
// something; but work that is done twice is felt even where it was a third of
// the whole. Below tooLittle the baseline is out of date, and would let the cost
// double unseen.
const (
	tooMuch   = 1.3
	tooLittle = 0.7
)

// baseline is what each scenario costs, by its name and the measure.
type baseline struct {
	// Go is the version that it was made with: another one may allocate
	// otherwise.
	Go    string                      `json:"go"`
	Costs map[string]map[string]int64 `json:"costs"`
}

// load reads a baseline. One that does not exist is empty.
func load(path string) (baseline, error) {
	var b baseline
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, nil
	case err != nil:
		return b, fmt.Errorf("read the baseline: %w", err)
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("read the baseline %s: %w; make it anew with make cost-baseline", path, err)
	}
	return b, nil
}

// save writes a baseline.
func (b baseline) save(path string) error {
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	return nil
}

// with returns the baseline with the figures of now in place of its own in some
// measures; scenarios that are no more are left out.
func (b baseline) with(now baseline, measures []string) baseline {
	out := baseline{Go: now.Go, Costs: make(map[string]map[string]int64)}
	for name, was := range b.Costs {
		for measure, n := range was {
			if !slices.Contains(measures, measure) {
				out.set(name, measure, n)
			}
		}
	}
	for name, is := range now.Costs {
		for measure, n := range is {
			out.set(name, measure, n)
		}
	}
	return out
}

func (b *baseline) set(name, measure string, n int64) {
	if b.Costs[name] == nil {
		b.Costs[name] = make(map[string]int64)
	}
	b.Costs[name][measure] = n
}

// difference is what is worth saying of one cost.
type difference struct {
	scenario, measure string
	was, is           int64 // -1 where there is none
}

// fails reports whether the difference breaks the build.
func (d difference) fails() bool {
	return d.was < 0 || d.is < 0 || d.more()
}

func (d difference) more() bool { return float64(d.is) > tooMuch*float64(d.was) }

func (d difference) less() bool { return float64(d.is) < tooLittle*float64(d.was) }

// String says what there is, and what to do.
func (d difference) String() string {
	const update = "run make cost-baseline"
	switch {
	case d.was < 0:
		return fmt.Sprintf("%s: %s: %d now, and the baseline has no figure: %s", d.scenario, d.measure, d.is, update)
	case d.is < 0:
		return fmt.Sprintf("%s: %s: %d in the baseline, and not measured any more: %s", d.scenario, d.measure, d.was, update)
	case d.more():
		return fmt.Sprintf("%s: %s: %d, was %d (%s, more than %.1f times): take it back, or %s if it is meant",
			d.scenario, d.measure, d.is, d.was, times(d.is, d.was), tooMuch, update)
	default:
		return fmt.Sprintf("%s: %s: %d, was %d (%s): %s, or it may grow back unseen",
			d.scenario, d.measure, d.is, d.was, times(d.is, d.was), update)
	}
}

// times tells how many times as much one figure is as another.
func times(is, was int64) string {
	if was == 0 {
		return "from nothing"
	}
	return fmt.Sprintf("%.2f times", float64(is)/float64(was))
}

// compare returns what is different in some measures, by scenario and measure.
func compare(was, is baseline, measures []string) []difference {
	names := slices.Sorted(maps.Keys(was.Costs))
	for name := range is.Costs {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []difference
	for _, name := range slices.Compact(names) {
		for _, measure := range measures {
			before, hadIt := was.Costs[name][measure]
			now, hasIt := is.Costs[name][measure]
			d := difference{name, measure, orNone(before, hadIt), orNone(now, hasIt)}
			if hadIt != hasIt || hasIt && (d.more() || d.less()) {
				out = append(out, d)
			}
		}
	}
	return out
}

func orNone(n int64, there bool) int64 {
	if !there {
		return -1
	}
	return n
}

// stranger tells that a baseline was made with another version of Go, "" if it
// was not.
func (b baseline) stranger(version string) string {
	if b.Go == version || b.Go == "" {
		return ""
	}
	was, is := strings.TrimPrefix(b.Go, "go"), strings.TrimPrefix(version, "go")
	return fmt.Sprintf("the baseline was made with Go %s, and this is Go %s: what is allocated may differ", was, is)
}
