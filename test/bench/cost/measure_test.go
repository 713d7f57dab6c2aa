package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var kept any // keeps what a test allocates from staying on its stack

func TestAllocationsAreCountedPerOperation(t *testing.T) {
	got, err := allocated(10, func() error {
		for range 10 {
			kept = make([]byte, 4096)
			kept = make([]byte, 4096)
			kept = make([]byte, 4096)
		}
		return nil
	})
	require.NoError(t, err)
	// A slice in an interface is its header and its bytes.
	assert.Equal(t, int64(6), got[allocations])
	assert.InDelta(t, 3*(4096+24), got[bytesUsed], 1)
}

func TestTheHeapThatIsHeldIsCountedPerObject(t *testing.T) {
	h := holding{"pages", 1000, func(n int) (any, error) {
		pages := make([]*[4096]byte, n)
		for i := range pages {
			pages[i] = new([4096]byte)
			kept = new([4096]byte) // garbage by the next round
		}
		kept = nil
		return pages, nil
	}}
	got, err := h.run()
	require.NoError(t, err)
	assert.InDelta(t, 4096+8, got[heap], 64)
}

func TestStatementsAreAddedUp(t *testing.T) {
	for name, c := range map[string]struct {
		profile string
		want    uint64
		wantErr string
	}{
		"each block counts as often as it was executed": {
			profile: "mode: atomic\na/b.go:1.2,3.4 5 7\na/b.go:3.4,5.6 2 0\na/c.go:1.1,2.2 1 3\n", want: 38,
		},
		"nothing covered is nothing": {profile: "mode: atomic\n", want: 0},
		"a line of another shape": {
			profile: "mode: atomic\na/b.go:1.2,3.4 5\n", wantErr: `"a/b.go:1.2,3.4 5" is no line of a coverage profile`,
		},
		"a size that is no number": {
			profile: "mode: atomic\na/b.go:1.2,3.4 x 1\n",
			wantErr: `a number of statements in a coverage profile: strconv.ParseUint: parsing "x": invalid syntax`,
		},
		"a count that is no number": {
			profile: "mode: atomic\na/b.go:1.2,3.4 1 x\n",
			wantErr: `a count in a coverage profile: strconv.ParseUint: parsing "x": invalid syntax`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sum([]byte(c.profile))
			if c.wantErr != "" {
				assert.EqualError(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestABinaryThatCountsNoStatementsSaysHowToBuildIt(t *testing.T) {
	err := gate(t.Context(), []string{"-statements", "-only", "a route decoded"}, &bytes.Buffer{})
	require.ErrorContains(t, err, "build this with -cover -covermode=atomic, as hack/cost does")
}

func TestCountersThatCannotBeReadAreAnError(t *testing.T) {
	_, err := textOf(t.Context(), filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, err, "read the counters of statements: ")
}

func TestAScenarioThatFailsIsNamed(t *testing.T) {
	boom := errors.New("boom")
	failing := func() error { return boom }
	for name, begin := range map[string]func() (func() error, error){
		"where its world cannot be made": func() (func() error, error) { return nil, boom },
		"where its operation fails":      func() (func() error, error) { return failing, nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario{"a write", 1, begin}.run(allocated)
			assert.EqualError(t, err, "a write: boom")
		})
	}
	_, err := holding{"a route", 1, func(int) (any, error) { return nil, boom }}.run()
	assert.EqualError(t, err, "a route: boom")
}
