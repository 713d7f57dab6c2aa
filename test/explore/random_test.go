package explore

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// Histories that are longer than those of TestAllHistories: three replicas, several reviews
// of each write, and many faults. A failure is shrunk to few steps.
func TestRandomHistories(t *testing.T) {
	oracle := newOracle()
	all := scenarios(t)
	rapid.Check(t, func(r *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(r, "scenario")]
		choices := rapid.SliceOfN(rapid.IntRange(0, 1<<16), 1, 40).Draw(r, "choices")
		history, conflict, err := randomHistory(t, c, intact, choices, oracle)
		if conflict || err != nil {
			r.Fatalf("%s: %v\n%s", c.name, err, history)
		}
	})
}

// Random histories find a broken protocol, too.
func TestRandomHistoriesFindBrokenProtocol(t *testing.T) {
	oracle, c := newOracle(), scenarios(t)[0]
	generator := rapid.SliceOfN(rapid.IntRange(0, 1<<16), 20, 40)
	for _, m := range []mutation{noFencing, noImport, noCatchUp, expiryByTimeAlone} {
		t.Run("without "+string(m), func(t *testing.T) {
			const most = 20_000
			for seed := range most {
				history, conflict, err := randomHistory(t, c, m, generator.Example(seed), oracle)
				if err != nil {
					t.Fatal(err)
				}
				if conflict {
					t.Logf("found by history %d:\n%s", seed, history)
					return
				}
			}
			t.Fatalf("not found by %d histories", most)
		})
	}
}

// randomHistory runs a history in which each choice is one of the enabled steps.
func randomHistory(t *testing.T, c *scenario, broken mutation, choices []int, j *oracle) (history string, conflict bool, err error) {
	t.Helper()
	var steps strings.Builder
	synctest.Test(t, func(*testing.T) {
		s := newSimulation(c, options{broken: broken, names: []string{"a", "b", "c"}, maxFaults: 8, maxTries: 3, maxRelists: 3}, j)
		defer s.end()
		for _, choice := range choices {
			enabled := s.enabled()
			if len(enabled) == 0 {
				return
			}
			next := enabled[choice%len(enabled)]
			fmt.Fprintln(&steps, next)
			if conflict, err = s.do(next); conflict || err != nil {
				return
			}
		}
	})
	return steps.String(), conflict, err
}
