//go:build long

package explore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// All histories of two writes with one fault.
func TestAllHistoriesWithAFault(t *testing.T) {
	requireNoConflict(t, scenarios(t)[0], options{broken: intact, names: two(), maxTries: 1, maxRelists: 1, maxFaults: 1})
}

// All histories of three writes at one replica, without a relist.
func TestAllHistoriesOfThreeWrites(t *testing.T) {
	for _, c := range scenarios(t) {
		if len(c.writes) > 2 {
			t.Run(c.name, func(t *testing.T) { requireNoConflict(t, c, options{broken: intact, names: two()[:1], maxTries: 1}) })
		}
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
