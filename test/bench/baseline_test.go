//go:build !race

// The race detector allocates memory, too.

package bench

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

const (
	baselineFile = "testdata/operations.txt"
	// tolerance is the allowed relative difference from the baseline. Between
	// runs it is less than 2 %.
	tolerance = 0.1
	remedy    = "fix the regression, or run make bench-baseline if the change is intended; make bench-compare shows all figures"
)

// figures are values by their unit.
type figures map[string]float64

// TestOperationsAllocateWhatTheBaselineSays is the regression test. It reads no
// clock: it runs a fixed number of operations and counts their allocations, with
// one CPU and without garbage collection, which would empty pools at any time.
// make bench-baseline does the same.
func TestOperationsAllocateWhatTheBaselineSays(t *testing.T) {
	baseline, err := readBaseline(baselineFile)
	require.NoError(t, err)
	setBenchtime(t, "20x")
	procs, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	})
	var names []string
	for _, o := range operations {
		names = append(names, o.name)
		t.Run(o.name, func(t *testing.T) {
			r := testing.Benchmark(o.run)
			require.Positive(t, r.N, "the operation failed: run go test -run '^$' -bench 'Operation/%s$' ./test/bench", o.name)
			assert.Empty(t, differences(baseline[o.name], figuresOf(r)), remedy)
		})
	}
	assert.ElementsMatch(t, names, slices.Collect(maps.Keys(baseline)), "operations and %s: %s", baselineFile, remedy)
}

// setBenchtime sets how often testing.Benchmark runs an operation.
func setBenchtime(t *testing.T, benchtime string) {
	t.Helper()
	const name = "test.benchtime"
	was := flag.Lookup(name).Value.String()
	require.NoError(t, flag.Set(name, benchtime))
	t.Cleanup(func() { require.NoError(t, flag.Set(name, was)) })
}

func figuresOf(r testing.BenchmarkResult) figures {
	out := figures{"B/op": float64(r.AllocedBytesPerOp()), "allocs/op": float64(r.AllocsPerOp())}
	maps.Copy(out, r.Extra)
	return out
}

// readBaseline returns the median of each figure of BenchmarkOperation by the
// name of the operation.
func readBaseline(file string) (map[string]figures, error) {
	samples := make(map[string]map[string][]float64)
	reader := benchfmt.Files{Paths: []string{file}}
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("read the baseline: %w", record)
		case *benchfmt.Result:
			name := strings.TrimPrefix(record.Name.String(), "Operation/")
			if samples[name] == nil {
				samples[name] = make(map[string][]float64)
			}
			for _, v := range record.Values {
				samples[name][v.Unit] = append(samples[name][v.Unit], v.Value)
			}
		}
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("read the baseline: %w", err)
	}
	out := make(map[string]figures, len(samples))
	for name, byUnit := range samples {
		out[name] = make(figures, len(byUnit))
		for unit, values := range byUnit {
			sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
			out[name][unit] = benchmath.AssumeNothing.Summary(sample, 0.95).Center
		}
	}
	return out, nil
}

// differences describes each figure that is too far from its baseline, in
// either direction: after an improvement, a regression to the old baseline would
// pass.
func differences(baseline, now figures) []string {
	var out []string
	for _, unit := range slices.Sorted(maps.Keys(baseline)) {
		was, is := baseline[unit], now[unit]
		if math.Abs(is-was) > tolerance*was {
			out = append(out, fmt.Sprintf("%s: %s, baseline %s", unit, decimal(is), decimal(was)))
		}
	}
	return out
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
