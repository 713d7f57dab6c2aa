package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// party is a policy as the tables name it: "Gateway override A".
type party struct{ level, block, letter string }

func (g party) String() string { return strings.TrimSpace(g.level + " " + g.block + " " + g.letter) }

// readParty reads the header of a row or a column; ok is false for one without a
// policy.
func readParty(t *testing.T, text string) (g party, ok bool) {
	t.Helper()
	if strings.HasPrefix(text, "No") { // None, No default, No override
		return party{}, false
	}
	words := strings.Fields(strings.TrimSuffix(text, " Policy")) // a typo in both texts
	require.Contains(t, []int{2, 3}, len(words), text)
	g = party{level: words[0], block: words[1]}
	if len(words) == 3 {
		g.letter = words[2]
	}
	require.Contains(t, []string{"Namespace", "Gateway", "HTTPRoute"}, g.level)
	require.Contains(t, []string{"default", "override"}, g.block)
	return g, true
}

// cell is a cell of a table: up to two policies, and which of them sets the
// value.
type cell struct {
	table string
	// own: the route has its own value.
	own         bool
	row, column *party
	winner      winner
}

type winner string

const (
	noOne  winner = "no one" // the list stays empty
	route  winner = "the route"
	row    winner = "the row's policy"
	column winner = "the column's policy"
	older  winner = "the older policy, or the first alphabetically"
)

// readTables reads the cells of all tables of a text.
func readTables(t *testing.T, folder string) []cell {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", folder, "tables.txt"))
	require.NoError(t, err)
	var cells []cell
	var title string
	var columns []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "####"):
			title, columns = strings.TrimSpace(strings.TrimLeft(line, "#")), nil
		case strings.HasPrefix(line, "|--"):
		case strings.HasPrefix(line, "||"):
			columns = split(line)
		case strings.HasPrefix(line, "|"):
			texts := split(line)
			require.Len(t, texts, len(columns), line)
			for i := 1; i < len(texts); i++ {
				cells = append(cells, readCell(t, title, texts[0], columns[i], texts[i]))
			}
		}
	}
	return cells
}

func split(line string) []string {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func readCell(t *testing.T, title, left, top, text string) cell {
	t.Helper()
	_, which, ok := strings.Cut(title, ", ")
	require.True(t, ok, title)
	c := cell{table: title, own: strings.HasPrefix(which, "value in ")}
	if g, ok := readParty(t, left); ok {
		c.row = &g
	}
	if g, ok := readParty(t, top); ok {
		c.column = &g
	}
	c.winner = c.readWinner(t, text)
	return c
}

// readWinner reads the text of a cell. The letter of a policy may be missing if
// it is unambiguous.
func (c *cell) readWinner(t *testing.T, text string) winner {
	t.Helper()
	switch text {
	case "Empty list":
		require.False(t, c.own)
		return noOne
	case "Value in HTTPRoute", "Value in RetryFilter":
		require.True(t, c.own)
		return route
	}
	first, tie, tied := strings.Cut(text, "<br />")
	g, ok := readParty(t, first)
	require.True(t, ok, text)
	means := func(of *party) bool {
		return of != nil && of.level == g.level && of.block == g.block && (g.letter == "" || of.letter == g.letter)
	}
	if tied {
		require.Equal(t, "first created wins<br />otherwise first alphabetically", tie)
		require.True(t, means(c.row) && means(c.column), text)
		return older
	}
	require.NotEqual(t, means(c.row), means(c.column), "%s: exactly one policy must be meant by %q", c.table, text)
	if means(c.row) {
		return row
	}
	return column
}
