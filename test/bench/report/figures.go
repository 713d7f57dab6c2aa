package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// nsPerOp is the metric that each benchmark reports unless it hides it.
const nsPerOp = "ns/op"

// figures are the values of metrics, by benchmark (without its prefix and the
// number of CPUs) and unit. A benchmark that ran more than once has several.
type figures struct {
	values  map[string]map[string][]float64
	machine []string // each machine that something was measured on
}

func figuresOf(results []*benchfmt.Result) figures {
	f := figures{values: make(map[string]map[string][]float64)}
	for _, r := range results {
		name, cpus := nameOf(r)
		if f.values[name] == nil {
			f.values[name] = make(map[string][]float64)
		}
		for _, v := range r.Values {
			unit, value := v.Unit, v.Value
			if v.OrigUnit != "" { // as printed: a limit may be met to the digit
				unit, value = v.OrigUnit, v.OrigValue
			}
			f.values[name][unit] = append(f.values[name][unit], value)
		}
		if m := machineOf(r, cpus); !slices.Contains(f.machine, m) {
			f.machine = append(f.machine, m)
		}
	}
	return f
}

// nameOf splits the name of a result from the number of CPUs that go test adds
// to it where it is not 1.
func nameOf(r *benchfmt.Result) (name string, cpus int) {
	name = r.Name.String()
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name, 1
	}
	if cpus, err := strconv.Atoi(name[i+1:]); err == nil {
		return name[:i], cpus
	}
	return name, 1
}

func machineOf(r *benchfmt.Result, cpus int) string {
	text := cmp.Or(r.GetConfig("goos"), "?") + "/" + cmp.Or(r.GetConfig("goarch"), "?")
	if cpu := r.GetConfig("cpu"); cpu != "" {
		text += ", " + cpu
	}
	return text + ", " + plural(cpus, "CPU")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// get returns the median of the measured values, and whether there are any.
func (f figures) get(benchmark, unit string) (float64, bool) {
	all := slices.Sorted(slices.Values(f.values[benchmark][unit]))
	if len(all) == 0 {
		return 0, false
	}
	middle := len(all) / 2
	if len(all)%2 == 0 {
		return (all[middle-1] + all[middle]) / 2, true
	}
	return all[middle], true
}

// show returns a value as text, or unmeasured if there is none.
func (f figures) show(benchmark, unit string, format func(float64) string) string {
	if v, ok := f.get(benchmark, unit); ok {
		return format(v)
	}
	return unmeasured
}
