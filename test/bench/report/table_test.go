package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTableOfLimits(t *testing.T) {
	want, err := os.ReadFile("testdata/table.md")
	require.NoError(t, err)
	var got bytes.Buffer
	require.NoError(t, run([]string{"testdata/bench.txt"}, &got))
	assert.Equal(t, string(want), got.String())
}

// Each row reads its own lines, and formats their values.
func TestRowsOfTheTable(t *testing.T) {
	tests := map[string]struct {
		lines string
		row   int
		want  []string
	}{
		"nothing measured": {
			"", 0, []string{"one route write, one client, p50", "1.25 ×", "1 ×", "not measured", "", "not measured"},
		},
		"another metric of the same benchmark": {
			"BenchmarkMemory 1 2 KiB/route", 11, []string{"memory held for a policy", "6 KiB", "4 KiB", "not measured", "", "not measured"},
		},
		"the aim to the digit": {
			"BenchmarkMemory 1 4 KiB/policy", 11, []string{"memory held for a policy", "6 KiB", "4 KiB", "4.00 KiB", "", "aim met"},
		},
		"the limit to the digit": {
			"BenchmarkEvent/route-2 1 50000 ns/op", 8, []string{"one informer event of a route", "50 µs", "20 µs", "50.0 µs", "", "met"},
		},
		"a little over the limit": {
			"BenchmarkEvent/route-2 1 50000.1 ns/op", 8, []string{"one informer event of a route", "50 µs", "20 µs", "50.0 µs", "", "**not met**"},
		},
		"on one CPU, whose number is not in the name": {
			"BenchmarkEvent/route 1 5000 ns/op", 8, []string{"one informer event of a route", "50 µs", "20 µs", "5.00 µs", "", "aim met"},
		},
		"the median of an odd number of runs": {
			"BenchmarkEvent/route-2 1 60000 ns/op\nBenchmarkEvent/route-2 1 30000 ns/op\nBenchmarkEvent/route-2 1 10000 ns/op",
			8, []string{"one informer event of a route", "50 µs", "20 µs", "30.0 µs", "", "met"},
		},
		"a ratio without what it is of": {
			"BenchmarkStart-2 1 1.31 ratio", 12,
			[]string{"start to ready with 10,000 routes and as many policies", "1.3 ×", "", "1.31 × (not measured)", "not measured", "**not met**"},
		},
		"no aim is never met": {
			"BenchmarkStart-2 1 0 ratio", 12,
			[]string{"start to ready with 10,000 routes and as many policies", "1.3 ×", "", "0.00 × (not measured)", "not measured", "met"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			results, err := read([]string{fileOf(t, test.lines+"\n")})
			require.NoError(t, err)
			assert.Equal(t, test.want, figuresOf(results).limits()[test.row])
		})
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for want, ns := range map[string]float64{
		"0.12 µs": 123, "1.23 µs": 1_234, "12.3 µs": 12_340, "123 µs": 123_400, "100 µs": 99_960, "10.0 µs": 9_996,
		"1.00 ms": 1e6, "999 ms": 999.4e6, "1.50 s": 1.5e9, "120 s": 120e9,
	} {
		assert.Equal(t, want, nanos(ns))
	}
	for want, ns := range map[string]float64{"60 ms": 60e6, "120 ms": 120e6, "1.5 s": 1.5e9, "100 µs": 100e3} {
		assert.Equal(t, want, bound(ns, nanos))
	}
}

// Results of two machines are not reported as those of one.
func TestEachMachineIsNamed(t *testing.T) {
	var got bytes.Buffer
	in := "goos: linux\ngoarch: amd64\ncpu: one\nBenchmarkMemory-2 1 4 KiB/policy\n" +
		"cpu: other\nBenchmarkMemory-2 1 4 KiB/route\nBenchmarkStart 1 1 ratio\n"
	require.NoError(t, run([]string{fileOf(t, in)}, &got))
	assert.True(t, strings.HasSuffix(got.String(),
		"\nMeasured on linux/amd64, one, 2 CPUs.\n\nMeasured on linux/amd64, other, 2 CPUs.\n\nMeasured on linux/amd64, other, 1 CPU.\n"), got.String())
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestWriteError(t *testing.T) {
	assert.EqualError(t, run([]string{"testdata/bench.txt"}, fullDisk{}), "write the table: the disk is full")
}
