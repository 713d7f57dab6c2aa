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

// bound returns the options of an exploration: those of OVERRULE_DEPTH, or what takes some
// seconds.
func bound(t *testing.T, i int, c *scenario) options {
	t.Helper()
	o := options{broken: intact, names: two(), maxTries: 1, maxRelists: 1}
	text := os.Getenv("OVERRULE_DEPTH")
	switch {
	case text != "":
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		o.maxFaults = n + 2 - len(c.writes)
	case len(c.writes) == 3:
		o.names, o.maxRelists = o.names[:1], 0
	case i == 0:
		o.maxFaults = 1
	}
	return o
}

func newExplorer(t *testing.T, c *scenario, o options) *explorer {
	t.Helper()
	return &explorer{t: t, scenario: c, options: o, oracle: newOracle()}
}

func TestAllHistories(t *testing.T) {
	for i, c := range scenarios(t) {
		t.Run(c.name, func(t *testing.T) {
			e := newExplorer(t, c, bound(t, i, c))
			begun := time.Now()
			history, complete := e.explore(begun.Add(maxTime))
			require.NoError(t, e.err)
			require.True(t, complete, "writes that conflict are stored: %v", history)
			assert.Less(t, e.diverged, e.runs/100+1, "histories that were not the same when they were run again")
			assert.GreaterOrEqual(t, len(e.stored), len(c.writes), "different writes are stored")
			t.Logf("%d histories, %d states, %d diverged, stored in %d ways, in %s", e.runs, len(e.visited), e.diverged, len(e.stored), time.Since(begun))
		})
	}
}

// Each part of the protocol is needed: without it, a history stores what conflicts.
func TestBrokenProtocol(t *testing.T) {
	for _, m := range []mutation{noFencing, noImport, noCatchUp, expiryByTimeAlone} {
		t.Run("without "+string(m), func(t *testing.T) {
			e := newExplorer(t, scenarios(t)[0], options{broken: m, names: two(), maxFaults: 1, maxTries: 1, maxRelists: 1})
			begun := time.Now()
			history, _ := e.explore(begun.Add(maxTime))
			require.NoError(t, e.err)
			require.True(t, e.conflict)
			t.Logf("found after %d histories and %s: %v", e.runs, time.Since(begun), history)
		})
	}
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
