package effective_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/tables"
)

// pathTable is a file of testdata/paths: small worlds (see worlds.World), and what a look
// at the paths of each shows.
type pathTable struct {
	// Look is one of looks.
	Look    string
	Objects map[string]json.RawMessage
	Rows    []pathRow
}

// pathRow has objects by their names in the table, or as they are.
type pathRow struct {
	Row     string
	Objects []string
	// Put or Remove is a change of the world.
	Put, Remove json.RawMessage
	// Of is the policy that is asked about.
	Of   string
	Want []string
	// States are those of some policies, and the rules that they lose.
	States map[string]string
}

// looks are ways to look at the paths of a world.
var looks = map[string]func(t *testing.T, table *pathTable, row pathRow, v *snapshot.View) []string{
	"chains": func(t *testing.T, _ *pathTable, _ pathRow, v *snapshot.View) []string { return chains(t, v, "Probe") },
	"spec":   func(t *testing.T, _ *pathTable, _ pathRow, v *snapshot.View) []string { return []string{specOf(t, v)} },
	"fields": func(t *testing.T, _ *pathTable, _ pathRow, v *snapshot.View) []string { return fielded(t, v) },
	"changes": func(t *testing.T, table *pathTable, row pathRow, v *snapshot.View) []string {
		if row.Put != nil {
			return changedChains(t, v, putChange(t, v, table.doc(t, row.Put)))
		}
		return changedChains(t, v, snapshot.Delete(read(t, v, table.doc(t, row.Remove)).Ref()))
	},
	"noPath": func(t *testing.T, _ *pathTable, row pathRow, v *snapshot.View) []string {
		p := policyOf(t, v, row.Of)
		out := outcomeOf(t, v, p.Ref())
		require.Equal(t, api.NoPath, out.State, out.Message)
		why, advice := effective.NoPath(v, p, out.Targets[0])
		assert.Equal(t, out.Message, why)
		if advice == "" {
			return []string{why}
		}
		return []string{why, advice}
	},
}

// TestPaths looks at the paths of the worlds of all tables.
func TestPaths(t *testing.T) {
	tables.Each(t, "testdata/paths", func(t *testing.T, table pathTable) {
		require.NotEmpty(t, table.Rows)
		for _, row := range table.Rows {
			t.Run(row.Row, func(t *testing.T) { table.run(t, row) })
		}
	})
}

func (table *pathTable) run(t *testing.T, row pathRow) {
	t.Helper()
	var text []string
	for _, name := range row.Objects {
		require.Contains(t, table.Objects, name)
		text = append(text, string(table.Objects[name]))
	}
	v := world(t, docs(text...))
	require.Contains(t, looks, table.Look)
	got := looks[table.Look](t, table, row, v)
	if table.Look == "changes" {
		assert.ElementsMatch(t, row.Want, got)
	} else {
		assert.Equal(t, row.Want, got)
	}
	for name, want := range row.States {
		out := outcomeOf(t, v, policyOf(t, v, name).Ref())
		state := string(out.State)
		for _, l := range out.Lost {
			if table.Look == "fields" {
				assert.Equal(t, "HTTPRoute", l.To.Kind, "what beat it is the route")
			} else {
				state += " " + l.Rule
			}
		}
		assert.Equal(t, want, state, name)
	}
}

func (table *pathTable) doc(t *testing.T, o json.RawMessage) string {
	t.Helper()
	var name string
	if json.Unmarshal(o, &name) != nil {
		return string(o)
	}
	require.Contains(t, table.Objects, name)
	return string(table.Objects[name])
}

// policyOf returns a policy by its kind, namespace and name.
func policyOf(t *testing.T, v *snapshot.View, name string) *policykind.Policy {
	t.Helper()
	for _, k := range v.Kinds() {
		for p := range v.Policies(k.Ref()) {
			if p.Ref().String() == name {
				return p
			}
		}
	}
	require.Fail(t, "no policy "+name)
	return nil
}
