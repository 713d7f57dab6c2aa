package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
)

// golden is rewritten by UPDATE=1 go test ./test/bench/report -run Golden.
const golden = "testdata/growth.svg"

func parsed(t *testing.T, lines ...string) []*benchfmt.Result {
	t.Helper()
	out, err := read(strings.NewReader(strings.Join(lines, "\n")+"\n"), "test")
	require.NoError(t, err)
	return out
}

func picture(t *testing.T, results []*benchfmt.Result) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, drawCurves(&out, results))
	return out.String()
}

func TestThePictureIsTheGoldenOne(t *testing.T) {
	results, err := readAll([]string{"testdata/growth.txt"}, nil)
	require.NoError(t, err)
	got := picture(t, results)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// element is any element of a picture.
type element struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Parts   []element  `xml:",any"`
}

func (e *element) find(name string) []element {
	var out []element
	for _, p := range e.Parts {
		if p.XMLName.Local == name {
			out = append(out, p)
		}
	}
	return out
}

func (e *element) attribute(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func drawn(t *testing.T, lines ...string) (texts, lineOf []string) {
	t.Helper()
	var root element
	require.NoError(t, xml.Unmarshal([]byte(picture(t, parsed(t, lines...))), &root))
	require.Equal(t, xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}, root.XMLName)
	for _, e := range root.find("text") {
		texts = append(texts, e.Text)
	}
	for _, e := range root.find("polyline") {
		lineOf = append(lineOf, e.attribute("points"))
	}
	return texts, lineOf
}

// The plot of the first panel goes from 75 to 425 and from 280 up to 92.
func TestACurveThatGrowsInProportionIsTheDiagonal(t *testing.T) {
	_, lines := drawn(t,
		"BenchmarkGrowth/gateway-policy-all/routes=1000-2 1 1000000 ns/op",
		"BenchmarkGrowth/gateway-policy-all/routes=10000-2 1 10000000 ns/op",
		"BenchmarkGrowth/gateway-policy-all/routes=100000-2 1 100000000 ns/op")
	assert.Equal(t, "75.0,280.0 250.0,186.0 425.0,92.0", lines[0])
}

func TestACurveThatDoesNotGrowIsLevel(t *testing.T) {
	_, lines := drawn(t,
		"BenchmarkGrowth/route-write/routes=1000-2 1 100000 ns/op",
		"BenchmarkGrowth/route-write/routes=100000-2 1 100000 ns/op")
	assert.Equal(t, "75.0,186.0 425.0,186.0", lines[2])
}

func TestALegendSaysWhereItsCurveEnds(t *testing.T) {
	texts, _ := drawn(t,
		"BenchmarkGrowth/event/routes=100000 1 21000 ns/op",
		"BenchmarkGrowth/event/routes=1000 1 19000 ns/op",
		"BenchmarkGrowth/memory/routes=1000 1 12.34 MiB",
		"BenchmarkGrowth/start/routes=1000 1 90 informer-ms 1500 ms")
	for _, want := range []string{
		"of a route: 19 µs to 21 µs",
		"of a policy: not measured",
		"routes, gateways and policies: 12.3 MiB to 12.3 MiB",
		"Overrule: 1.5 s to 1.5 s",
		"a bare informer's list of the same: 90 ms to 90 ms",
	} {
		assert.Contains(t, texts, want)
	}
}

func TestAFigureMeasuredSeveralTimesCountsWithItsMedian(t *testing.T) {
	texts, _ := drawn(t,
		"BenchmarkGrowth/event/routes=1000 1 900000 ns/op",
		"BenchmarkGrowth/event/routes=1000 1 20000 ns/op",
		"BenchmarkGrowth/event/routes=1000 1 30000 ns/op",
		"BenchmarkGrowth/event-policy/routes=1000 1 20000 ns/op",
		"BenchmarkGrowth/event-policy/routes=1000 1 30000 ns/op")
	assert.Contains(t, texts, "of a route: 30 µs to 30 µs")
	assert.Contains(t, texts, "of a policy: 25 µs to 25 µs")
}

func TestAPanelWithoutFiguresSaysSo(t *testing.T) {
	texts, lines := drawn(t, "BenchmarkGrowth/event/routes=1000 1 900000 ns/op")
	assert.Equal(t, []string{"One write", "not measured"}, texts[:2])
	assert.Len(t, lines, 2, "those of the one panel that is drawn")
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		line, want string
	}{
		"nothing of the growth": {
			"BenchmarkEvent/route 1 900 ns/op",
			"draw the curves: the input has no result of BenchmarkGrowth: give the output of `make bench-growth`",
		},
		"a size that is no number": {
			"BenchmarkGrowth/event/routes=many 1 900 ns/op",
			`draw the curves: Growth/event/routes=many: "/routes=many" is no number of routes, as in /routes=1000`,
		},
		"no routes at all": {
			"BenchmarkGrowth/event/routes=0 1 900 ns/op",
			`draw the curves: Growth/event/routes=0: "/routes=0" is no number of routes, as in /routes=1000`,
		},
		"something else in place of the size": {
			"BenchmarkGrowth/event/gateways=10 1 900 ns/op",
			`draw the curves: Growth/event/gateways=10: "/gateways=10" is no number of routes, as in /routes=1000`,
		},
		"a value that a logarithm does not take": {
			"BenchmarkGrowth/memory/routes=1000 1 0 MiB",
			"draw the curves: Growth/memory/routes=1000: MiB is 0, which has no place on a logarithmic axis",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.EqualError(t, drawCurves(io.Discard, parsed(t, test.line)), test.want)
		})
	}
	assert.ErrorIs(t, drawCurves(io.Discard, nil), errNoCurves)
}

type broken struct{}

var errBroken = errors.New("the disk is full")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestAPictureThatCannotBeWrittenIsAnError(t *testing.T) {
	err := drawCurves(broken{}, parsed(t, "BenchmarkGrowth/event/routes=1000 1 900 ns/op"))
	assert.ErrorIs(t, err, errBroken)
	assert.EqualError(t, err, "write the curves: the disk is full")
}

func TestTheFlagDrawsIntoAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "curves.svg")
	require.NoError(t, run([]string{"-svg", file, "testdata/growth.txt"}, nil, io.Discard))
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

func TestAFileIsKeptIfThereIsNothingToDraw(t *testing.T) {
	file := filepath.Join(t.TempDir(), "curves.svg")
	require.NoError(t, os.WriteFile(file, []byte("the old ones"), 0o600))
	require.ErrorIs(t, run([]string{"-svg", file}, strings.NewReader("PASS\n"), io.Discard), errNoCurves)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "the old ones", string(got))
}

func TestNumbersAreWrittenAsPeopleReadThem(t *testing.T) {
	for want, got := range map[string]string{
		"1 µs": seconds(1e-6), "0.5 µs": seconds(5e-7), "999 µs": seconds(999.4e-6), "1 ms": seconds(999.6e-6),
		"12.3 ms": seconds(12.34e-3), "1 s": seconds(0.9996), "1.23 s": seconds(1.234), "120 s": seconds(120),
		"9.16 MiB": mebibytes(9.159), "1,235 MiB": mebibytes(1234.6), "100 MiB": mebibytes(100),
		"100,000": count(100_000), "1,000,000": count(1_000_000), "0.001": count(0.001),
	} {
		assert.Equal(t, want, got)
	}
}

func TestAnAxisHoldsItsValuesInWholeDecades(t *testing.T) {
	for name, test := range map[string]struct {
		values    []float64
		low, high int
	}{
		"values between the decades":         {[]float64{20, 3000}, 1, 4},
		"values on the decades":              {[]float64{1000, 100_000}, 3, 5},
		"one decade is too few":              {[]float64{20, 30}, 1, 3},
		"one value on a decade lies between": {[]float64{100}, 1, 3},
		"less than one":                      {[]float64{0.002, 0.9}, -3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, axis{low: test.low, high: test.high, from: 5, to: 7}, axisOver(test.values, 5, 7))
		})
	}
}
