package explore

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxTime is the time of one exploration: without OVERRULE_DEPTH, none takes nearly as
// long.
const maxTime = time.Hour

func newExplorer(t *testing.T, c *scenario, o options) *explorer {
	t.Helper()
	return &explorer{t: t, scenario: c, options: o, oracle: newOracle()}
}

func TestAllHistories(t *testing.T) {
	for _, c := range scenarios(t) {
		o := options{broken: intact, names: two(), maxTries: 1, maxRelists: 1}
		if text := os.Getenv("OVERRULE_DEPTH"); text != "" {
			n, err := strconv.Atoi(text)
			require.NoError(t, err)
			o.maxFaults = n + 2 - len(c.writes)
		} else if len(c.writes) > 2 {
			continue // TestAllHistoriesOfThreeWrites
		}
		t.Run(c.name, func(t *testing.T) { requireNoConflict(t, c, o) })
	}
}

// requireNoConflict visits all histories of a scenario.
func requireNoConflict(t *testing.T, c *scenario, o options) {
	t.Helper()
	e := newExplorer(t, c, o)
	begun := time.Now()
	history, complete := e.explore(begun.Add(maxTime))
	require.NoError(t, e.err)
	require.True(t, complete, "writes that conflict are stored: %v", history)
	assert.Less(t, e.diverged, e.runs/100+1, "histories that were not the same when they were run again")
	assert.GreaterOrEqual(t, len(e.stored), len(c.writes), "different writes are stored")
	t.Logf("%d histories, %d states, %d diverged, stored in %d ways, in %s", e.runs, len(e.visited), e.diverged, len(e.stored), time.Since(begun))
}

// explorer visits the states that histories of a scenario reach.
type explorer struct {
	t        *testing.T
	scenario *scenario
	options  options
	oracle   *oracle
	visited  map[string]bool
	// open are the steps of the history that is being run, each with those that are not
	// visited yet in its place.
	open     []branch
	runs     int
	diverged int
	stored   map[string]bool
	conflict bool
	err      error
}

type branch struct {
	taken step
	rest  []step
}

// explore visits all states, or those until the first conflict. It returns the history
// of that.
func (e *explorer) explore(until time.Time) (history []step, complete bool) {
	e.visited, e.stored = make(map[string]bool), make(map[string]bool)
	for {
		synctest.Test(e.t, func(*testing.T) { e.run() })
		e.runs++
		if e.conflict || e.err != nil {
			for _, b := range e.open {
				history = append(history, b.taken)
			}
			return history, false
		}
		for len(e.open) > 0 && len(e.open[len(e.open)-1].rest) == 0 {
			e.open = e.open[:len(e.open)-1]
		}
		if len(e.open) == 0 {
			return nil, true
		}
		if time.Now().After(until) {
			return nil, false
		}
		last := &e.open[len(e.open)-1]
		last.taken, last.rest = last.rest[0], last.rest[1:]
	}
}

// run runs the open history, and continues it until a state that was visited.
func (e *explorer) run() {
	s := newSimulation(e.scenario, e.options, e.oracle)
	defer s.end()
	for _, b := range e.open {
		if !slices.Contains(s.enabled(), b.taken) {
			e.diverged++
			return
		}
		if e.do(s, b.taken) {
			return
		}
	}
	for {
		key := s.key()
		if e.visited[key] {
			return
		}
		e.visited[key] = true
		next := s.enabled()
		if len(next) == 0 {
			return
		}
		e.open = append(e.open, branch{next[0], next[1:]})
		if e.do(s, next[0]) {
			return
		}
	}
}

// do runs a step, and reports whether that ends the exploration.
func (e *explorer) do(s *simulation, next step) bool {
	e.conflict, e.err = s.do(next)
	if next.action == store {
		var names []string
		for _, w := range s.server.storedWrites {
			names = append(names, fmt.Sprint(w.change.Operation, " ", w.change.Object().Ref()))
		}
		e.stored[strings.Join(names, ", ")] = true
	}
	return e.conflict || e.err != nil
}
