package cases

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var documentedRow = regexp.MustCompile("(?m)^\\|.*\\| `([a-z0-9-]+)` \\|$")

// The tables of docs/guardrails.md name each row once, and beside them only cases.
func TestDocumentedRows(t *testing.T) {
	page, err := os.ReadFile("../../docs/guardrails.md")
	require.NoError(t, err)
	all := make(map[string]bool)
	for _, c := range Load(t) {
		all[c.File] = true
	}
	var rows []string
	for _, r := range Guardrails(t) {
		rows = append(rows, r.Name)
	}
	entries := LoadEntries(t)
	rows = append(rows, entries.Sequences...)
	for _, e := range entries.Entries {
		rows = append(rows, e.Name)
	}
	var named []string
	for _, m := range documentedRow.FindAllStringSubmatch(string(page), -1) {
		if !all[m[1]] || slices.Contains(rows, m[1]) {
			named = append(named, m[1])
		}
	}
	assert.ElementsMatch(t, rows, named)
}
