package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// figures is a baseline of one scenario, "a write".
func figures(version string, measures map[string]int64) baseline {
	return baseline{Go: version, Costs: map[string]map[string]int64{"a write": measures}}
}

func TestAnyCostThatGrewByMoreThanItMayFails(t *testing.T) {
	const pass, fail = false, true
	for name, c := range map[string]struct {
		was, is  map[string]int64
		want     string
		verdict  bool
		measures []string
	}{
		"the same figures pass and say nothing": {
			was: map[string]int64{allocations: 100, bytesUsed: 5000}, is: map[string]int64{allocations: 100, bytesUsed: 5000},
			verdict: pass,
		},
		"a figure that grew to 1.3 times passes": {
			was: map[string]int64{allocations: 100}, is: map[string]int64{allocations: 130}, verdict: pass,
		},
		"a figure that grew to more fails": {
			was: map[string]int64{allocations: 100}, is: map[string]int64{allocations: 131}, verdict: fail,
			want: "FAIL: a write: allocations: 131, was 100 (1.31 times, more than 1.3 times): take it back, or run make cost-baseline if it is meant\n",
		},
		"a doubling fails in each measure that doubled": {
			was: map[string]int64{allocations: 10, bytesUsed: 300}, is: map[string]int64{allocations: 20, bytesUsed: 600}, verdict: fail,
			want: "FAIL: a write: allocations: 20, was 10 (2.00 times, more than 1.3 times): take it back, or run make cost-baseline if it is meant\n" +
				"FAIL: a write: bytes: 600, was 300 (2.00 times, more than 1.3 times): take it back, or run make cost-baseline if it is meant\n",
		},
		"what cost nothing and costs something now fails": {
			was: map[string]int64{allocations: 0}, is: map[string]int64{allocations: 1}, verdict: fail,
			want: "FAIL: a write: allocations: 1, was 0 (from nothing, more than 1.3 times): take it back, or run make cost-baseline if it is meant\n",
		},
		"a figure that fell to 0.7 times says nothing": {
			was: map[string]int64{allocations: 100}, is: map[string]int64{allocations: 70}, verdict: pass,
		},
		"a figure that fell below asks for a new baseline and passes": {
			was: map[string]int64{allocations: 100}, is: map[string]int64{allocations: 69}, verdict: pass,
			want: "notice: a write: allocations: 69, was 100 (0.69 times): run make cost-baseline, or it may grow back unseen\n",
		},
		"a figure without a baseline fails: nothing would guard it": {
			is: map[string]int64{allocations: 100}, verdict: fail,
			want: "FAIL: a write: allocations: 100 now, and the baseline has no figure: run make cost-baseline\n",
		},
		"a baseline without a figure fails: nothing guards it any more": {
			was: map[string]int64{allocations: 100}, verdict: fail,
			want: "FAIL: a write: allocations: 100 in the baseline, and not measured any more: run make cost-baseline\n",
		},
		"a measure that was not taken is not compared": {
			was: map[string]int64{statements: 1000}, is: map[string]int64{}, verdict: pass,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := judge(&out, figures("go1.26", c.was), figures("go1.26", c.is), []string{allocations, bytesUsed, heap})
			assert.Equal(t, c.want, out.String())
			assert.Equal(t, c.verdict, err != nil)
			if c.verdict {
				assert.ErrorIs(t, err, errCosts)
			}
		})
	}
}

func TestAnotherVersionOfGoIsTold(t *testing.T) {
	var out bytes.Buffer
	same := map[string]int64{allocations: 1}
	require.NoError(t, judge(&out, figures("go1.26.8", same), figures("go1.27.1", same), []string{allocations}))
	assert.Equal(t, "notice: the baseline was made with Go 1.26.8, and this is Go 1.27.1: what is allocated may differ\n", out.String())
}

func TestACostThatGrowsWithWhatIsNotTouchedFails(t *testing.T) {
	costs := func(among, fewer int64) baseline {
		return baseline{Go: "go1.26", Costs: map[string]map[string]int64{
			routeWrite: {statements: among}, routeWriteFew: {statements: fewer},
		}}
	}
	for name, c := range map[string]struct {
		among, fewer int64
		want         string
	}{
		"the same cost passes":           {among: 100, fewer: 100},
		"1.5 times passes: trees deepen": {among: 150, fewer: 100},
		"more fails": {
			among: 151, fewer: 100,
			want: "FAIL: a write of a route, among 1000: statements: 151, and 100 for a write of a route, among 100: what it costs grows with what it does not touch\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			now := costs(c.among, c.fewer)
			err := judge(&out, now, now, []string{statements})
			assert.Equal(t, c.want, out.String())
			assert.Equal(t, c.want != "", err != nil)
		})
	}
}

// merged is a file letter by letter: git shall show only what changed.
const merged = `{
  "go": "go1.27",
  "costs": {
    "kept": {
      "allocations": 4,
      "statements": 2
    },
    "new": {
      "allocations": 5
    }
  }
}
`

func TestAnUpdateReplacesTheMeasuresThatWereTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	was := baseline{Go: "go1.26", Costs: map[string]map[string]int64{
		"kept": {allocations: 1, statements: 2}, "gone": {allocations: 3},
	}}
	now := baseline{Go: "go1.27", Costs: map[string]map[string]int64{"kept": {allocations: 4}, "new": {allocations: 5}}}
	require.NoError(t, was.with(now, []string{allocations}).save(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, strings.Split(merged, "\n"), strings.Split(string(text), "\n"))
	again, err := load(path)
	require.NoError(t, err)
	assert.Equal(t, was.with(now, []string{allocations}), again)
}

func TestABaselineThatIsNotThereIsEmpty(t *testing.T) {
	b, err := load(filepath.Join(t.TempDir(), "none.json"))
	require.NoError(t, err)
	assert.Equal(t, baseline{}, b)
}

func TestABaselineThatCannotBeReadSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := load(path)
	assert.EqualError(t, err, "read the baseline "+path+": unexpected end of JSON input; make it anew with make cost-baseline")
	_, err = load(filepath.Dir(path))
	assert.ErrorContains(t, err, "read the baseline: ")
}

func TestABaselineThatCannotBeWrittenIsAnError(t *testing.T) {
	err := baseline{}.save(filepath.Join(t.TempDir(), "no", "folder.json"))
	assert.ErrorContains(t, err, "write the baseline: ")
}
