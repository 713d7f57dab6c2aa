package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The figures are hack/cost's business, in a binary without a race detector:
// here each operation has to do what it says.
func TestEveryScenarioRuns(t *testing.T) {
	names := map[string]bool{}
	for _, s := range scenarios {
		assert.False(t, names[s.name], "%s is there twice", s.name)
		names[s.name] = true
		t.Run(s.name, func(t *testing.T) {
			op, err := s.begin()
			require.NoError(t, err)
			require.NoError(t, op())
			require.NoError(t, op(), "once more")
		})
	}
	for _, l := range laws {
		assert.True(t, names[l.among] && names[l.fewer], "%v", l)
	}
	for _, h := range holdings {
		assert.False(t, names[h.name], "%s is there twice", h.name)
		t.Run(h.name, func(t *testing.T) {
			held, err := h.build(2)
			require.NoError(t, err)
			assert.NotNil(t, held)
		})
	}
}

func TestTheBaselineHasAFigureForEverything(t *testing.T) {
	b, err := load("baseline.json")
	require.NoError(t, err)
	want := map[string][]string{}
	for _, s := range scenarios {
		want[s.name] = []string{allocations, bytesUsed, statements}
	}
	for _, h := range holdings {
		want[h.name] = []string{heap}
	}
	for name, measures := range want {
		for _, m := range measures {
			assert.Positive(t, b.Costs[name][m], "%s: %s: run make cost-baseline", name, m)
		}
	}
	assert.Len(t, b.Costs, len(want))
}

func TestTheGateSeesADoubling(t *testing.T) {
	now, err := measure(t.Context(), false, "an event of")
	require.NoError(t, err)
	half := baseline{Go: now.Go, Costs: make(map[string]map[string]int64)}
	for name, costs := range now.Costs {
		for measure, n := range costs {
			half.set(name, measure, n/2)
		}
	}
	again, err := measure(t.Context(), false, "an event of")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, judge(&out, now, again, []string{allocations, bytesUsed}))
	assert.Empty(t, out.String(), "the same again")
	require.ErrorIs(t, judge(&out, half, again, []string{allocations, bytesUsed}), errCosts)
	assert.Equal(t, 2*4, strings.Count(out.String(), "FAIL: an event of a "), out.String())
}

func TestFiguresOfSomeScenariosAreOnlyPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	require.NoError(t, figures("go1.26", map[string]int64{allocations: 1}).save(path))
	var out bytes.Buffer
	require.NoError(t, gate(t.Context(), []string{"-baseline", path, "-only", "a route decoded"}, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3, out.String())
	assert.Regexp(t, `^SCENARIO +MEASURE +BASELINE +NOW *$`, lines[0])
	assert.Regexp(t, `^a route decoded, 3 KB +allocations +- +\d+ *$`, lines[1])
	assert.Regexp(t, `^a route decoded, 3 KB +bytes +- +\d+ *$`, lines[2])
}

func TestBadInputOfTheGateIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":                    {[]string{"-fast"}, "flag provided but not defined: -fast"},
		"a baseline that is a folder":        {[]string{"-baseline", t.TempDir()}, "read the baseline: "},
		"an update of some of the scenarios": {[]string{"-update", "-only", "route"}, "-update takes all scenarios: leave out -only"},
		"a word in no scenario's name":       {[]string{"-only", "teapot"}, `no scenario has "teapot" in its name`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, gate(t.Context(), c.args, &bytes.Buffer{}), c.want)
		})
	}
}
