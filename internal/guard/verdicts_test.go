package guard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// verdictTable is a file of testdata/verdicts: writes, each in a small world of its own
// (see worlds.World), and the findings about them.
type verdictTable struct {
	// About are the beginnings of the reasons that count; none is all.
	About []string
	// Codes: findings are shown without what they name; Requests: losses of overrides are
	// shown with a request that loses them.
	Codes, Requests bool
	// Both: the findings are those of users who may not override; those who may are
	// warned of the same.
	Both bool
	// Unlisted: what takes an override out of force is held up while the policies of its
	// kind were never listed.
	Unlisted bool
	// ReadsAll is the option of the guard.
	ReadsAll bool
	Objects  map[string]json.RawMessage
	Rows     []verdictRow
}

// verdictRow has objects by their names in the table, or as they are.
type verdictRow struct {
	Row    string
	Before []json.RawMessage
	// Write is an object that is created or updated, Delete one that is deleted.
	Write, Delete json.RawMessage
	// Owner is the owner that the write adds.
	Owner string
	// May are the policies whose overrides the user may remove.
	May  []string
	Want []string
}

// TestVerdicts evaluates the rows of all tables.
func TestVerdicts(t *testing.T) {
	files, err := filepath.Glob("testdata/verdicts/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var table verdictTable
		require.NoError(t, yaml.UnmarshalStrict(data, &table), file)
		require.NotEmpty(t, table.Rows, file)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			for _, row := range table.Rows {
				t.Run(row.Row, func(t *testing.T) { table.run(t, row) })
			}
		})
	}
}

func (table *verdictTable) run(t *testing.T, row verdictRow) {
	t.Helper()
	v := table.world(t, row.Before)
	c := guard.Change{Operation: guard.Delete, Owner: row.Owner}
	if row.Delete != nil {
		c.Before = v.Get(read(t, v, table.doc(t, row.Delete)).Ref())
	} else {
		c = change(v, read(t, v, table.doc(t, row.Write)))
		c.Owner = row.Owner
	}
	assert.Equal(t, row.Want, table.findings(t, row.May, v, c))
	if table.Both {
		assert.ElementsMatch(t, allowed(row.Want), table.findings(t, []string{"*"}, v, c), "who may override is warned")
	}
	if table.Unlisted && len(row.Want) > 0 {
		checkUnlisted(t, v, c, strings.Fields(row.Want[0])[3])
	}
}

// world returns the world of objects, which may be constraints, too.
func (table *verdictTable) world(t *testing.T, objects []json.RawMessage) *snapshot.View {
	t.Helper()
	var text, constraints []string
	for _, o := range objects {
		doc := table.doc(t, o)
		if strings.HasPrefix(doc, `{"kind":"ClusterPolicyConstraint"`) {
			constraints = append(constraints, doc)
		} else {
			text = append(text, doc)
		}
	}
	v := world(t, docs(text...))
	for _, doc := range constraints {
		o, err := snapshot.Decode(constraint.ClusterKind, nil, []byte(doc), 0)
		require.NoError(t, err)
		require.NoError(t, o.(*constraint.Constraint).Invalid)
		v = v.With(snapshot.Put(o))
	}
	return v
}

// doc returns an object, which may be a name of one, or text whose spelling counts.
func (table *verdictTable) doc(t *testing.T, o json.RawMessage) string {
	t.Helper()
	var text string
	if json.Unmarshal(o, &text) != nil {
		return string(o)
	}
	if strings.HasPrefix(text, "{") {
		return text
	}
	require.Contains(t, table.Objects, text)
	return string(table.Objects[text])
}

// findings shows what counts of the findings about a change, by a user who may override
// some policies.
func (table *verdictTable) findings(t *testing.T, may []string, v *snapshot.View, c guard.Change) []string {
	t.Helper()
	c.User = userOf("dev")
	g := &guard.Guard{Engine: effective.NewEngine(), Permissions: &owners{may: map[string][]string{"dev": may}}, ReadsAll: table.ReadsAll}
	ev, err := g.Evaluate(t.Context(), v, c, nil)
	require.NoError(t, err)
	assert.Equal(t, len(ev.Denials) > 0, ev.Denied())
	all := findings(t, ev)
	switch {
	case table.Requests:
		all = requestsOf(ev)
	case table.Codes:
		all = codes(t, ev)
	}
	var out []string
	for _, text := range all {
		_, code, _ := strings.Cut(text, " ")
		if len(table.About) == 0 || slices.ContainsFunc(table.About, func(about string) bool { return strings.HasPrefix(code, about) }) {
			out = append(out, text)
		}
	}
	return out
}

// requestsOf shows the losses of overrides, each with a request that loses it.
func requestsOf(ev *guard.Decision) []string {
	var out []string
	for _, f := range slices.Concat(ev.Denials, ev.Warnings) {
		if strings.HasPrefix(string(f.Code), "Override") && f.Policy.Name != "" {
			out = append(out, fmt.Sprintf("%s %s %s: %s by %s", f.Action, f.Code, f.Policy, f.Request, f.ServedBy))
		}
	}
	return out
}
