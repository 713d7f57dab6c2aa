package cases

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A name is that of one row, whichever file has it.
func TestNamesOfRowsAreUnique(t *testing.T) {
	entries := LoadEntries(t)
	names := slices.Clone(entries.Sequences)
	for _, r := range Guardrails(t) {
		names = append(names, r.Name)
	}
	for _, e := range entries.Entries {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	assert.Equal(t, slices.Compact(slices.Clone(names)), names)
}
