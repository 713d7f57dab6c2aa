package merge_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/tables"
)

const (
	atomic = merge.Atomic
	mixed  = merge.Merge
	patch  = merge.Patch

	hierarchical = merge.SameTargetHierarchical
	oldestWins   = merge.SameTargetOldestWins
	collect      = merge.SameTargetCollect
)

// foldRow is a row of a file of testdata/folds: a path, and the result of its fold.
type foldRow struct {
	Row string
	// Path is the layers, the highest first, each on its own level unless it says another.
	Path []foldLayer
	// Groups are the groups of rules by the first segment of their keys, each sideBySide,
	// sameTier or otherTiers. A rule whose value is off disables others.
	Groups map[string]string
	// ItemKeys are the last segments of the values that identify an item of a list.
	ItemKeys []string
	foldResult
	// Hierarchical, OldestWins and Collect are the results if all layers have that
	// SameTarget.
	Hierarchical, OldestWins, Collect *foldResult
	Notes                             []string
	// Counts and Spec are compared if they are there.
	Counts []string
	Spec   map[string]any
	// Replaced is who replaced a policy whole, or "".
	Replaced map[string]string
	// Acted is what the bare block of a policy was applied as.
	Acted map[string][]string
}

// foldResult is in the format of effectiveOf and lossesOf.
type foldResult struct{ Effective, Lost []string }

// foldLayer is a layer of a policy. If the policy is on the path twice, one of them has
// its blocks.
type foldLayer struct {
	Policy        string
	Level, Tier   *int
	SameTarget    string
	As            *struct{ Block, Strategy, By string }
	Created, Rank int
	Unset         []string
	Blocks        []foldBlock
}

type foldBlock struct {
	Defaults, Bare, Overrides, Object map[string]any
	Strategy, When                    string
}

// TestFolds folds the paths of all tables.
func TestFolds(t *testing.T) {
	tables.Each(t, "testdata/folds", func(t *testing.T, rows []foldRow) {
		for _, row := range rows {
			t.Run(row.Row, func(t *testing.T) { row.run(t) })
		}
	})
}

func (row *foldRow) run(t *testing.T) {
	layers := row.layers(t)
	if row.Hierarchical != nil {
		for meet, want := range []*foldResult{row.Hierarchical, row.OldestWins, row.Collect} {
			for i := range layers {
				layers[i].SameTarget = merge.SameTarget(meet)
			}
			assert.Equal(t, *want, summarize(t, layers), "sameTarget %d", meet)
		}
		return
	}
	assert.Equal(t, row.foldResult, summarize(t, layers))
	r := fold(t, layers...)
	assert.Equal(t, row.Notes, notesOf(r))
	if row.Counts != nil {
		assert.Equal(t, row.Counts, countsOf(r))
	}
	if row.Spec != nil {
		assert.Equal(t, integers(row.Spec), r.Spec())
	}
	for _, o := range r.Outcomes {
		if by, is := row.Replaced[o.Policy.Name]; is {
			replaced := ""
			if p := o.ReplacedBy(); p != nil {
				replaced = p.Name
			}
			assert.Equal(t, by, replaced, o.Policy.Name)
		}
		if acted, is := row.Acted[o.Policy.Name]; is {
			for _, b := range []merge.Block{merge.Defaults, merge.Bare, merge.Overrides} {
				assert.Equal(t, slices.Contains(acted, b.String()), o.AppliedAs(merge.Bare, b), b.String())
			}
		}
	}
}

// layers returns the path. A policy is one, however often it is there.
func (row *foldRow) layers(t *testing.T) []merge.Layer {
	t.Helper()
	all := make(map[string]*merge.Policy)
	named := func(name string) *merge.Policy {
		if name != "" && all[name] == nil {
			all[name] = policy(name)
		}
		return all[name]
	}
	var out []merge.Layer
	for i, l := range row.Path {
		p := unsets(t, named(l.Policy), l.Unset...)
		p.Created, p.Rank = p.Created+int64(l.Created), p.Rank+l.Rank
		for _, b := range l.Blocks {
			p.Blocks = append(p.Blocks, row.grouped(b.rules(t)))
		}
		layer := merge.Layer{Policy: p, Level: i, SameTarget: map[string]merge.SameTarget{"oldestWins": oldestWins, "collect": collect}[l.SameTarget]}
		if l.Level != nil {
			layer.Level = *l.Level
		}
		if layer.Tier = layer.Level; l.Tier != nil {
			layer.Tier = *l.Tier
		}
		if l.As != nil {
			layer.As = &merge.Reading{Block: blockOf(t, l.As.Block), Strategy: strategyOf(t, l.As.Strategy), By: named(l.As.By)}
		}
		out = append(out, layer)
	}
	return out
}

// grouped sets the groups of rules.
func (row *foldRow) grouped(b merge.Rules) merge.Rules {
	names := slices.Sorted(maps.Keys(row.Groups))
	for i := range b.Rules {
		r := &b.Rules[i]
		segments := r.Key.Segments()
		if slices.Contains(row.ItemKeys, segments[len(segments)-1]) {
			r.ItemDepth = len(segments) - 1
		}
		name := segments[0]
		if at := slices.Index(names, name); at >= 0 {
			one := slices.Index([]string{"sideBySide", "sameTier", "otherTiers"}, row.Groups[name])
			r.Group = merge.Group{ID: uint16(at + 1), One: merge.Exclusion(one), Disables: r.Value == "off"}
		}
	}
	return b
}

func (b *foldBlock) rules(t *testing.T) merge.Rules {
	t.Helper()
	for kind, content := range map[merge.Block]map[string]any{
		merge.Defaults: b.Defaults, merge.Bare: b.Bare, merge.Overrides: b.Overrides, merge.Object: b.Object,
	} {
		if content == nil {
			continue
		}
		var rules []merge.Rule
		for key, value := range content {
			r := rule(key, integers(value))
			empty, is := r.Value.(map[string]any)
			r.EmptyMap = is && len(empty) == 0
			rules = append(rules, r)
		}
		out := block(kind, strategyOf(t, b.Strategy), rules)
		if b.When != "" {
			var key string
			var limit int64
			_, err := fmt.Sscanf(b.When, "spec.%s > %d", &key, &limit)
			require.NoError(t, err, b.When)
			out.When = over(key, limit)
		}
		return out
	}
	require.Fail(t, "a block without rules")
	return merge.Rules{}
}

func blockOf(t *testing.T, name string) merge.Block {
	t.Helper()
	for _, b := range []merge.Block{merge.Defaults, merge.Bare, merge.Overrides} {
		if b.String() == name {
			return b
		}
	}
	require.Fail(t, name)
	return 0
}

// strategyOf returns a strategy by its name; none is atomic.
func strategyOf(t *testing.T, name string) merge.Strategy {
	t.Helper()
	if name == "" {
		return merge.Atomic
	}
	out, ok := merge.ParseStrategy(name)
	require.True(t, ok, name)
	return out
}

// integers returns a value of JSON with its numbers as specs have them.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}

// summarize folds layers, in this and in the opposite order.
func summarize(t *testing.T, layers []merge.Layer) foldResult {
	t.Helper()
	r := fold(t, layers...)
	backwards := slices.Clone(layers)
	slices.Reverse(backwards)
	assert.Equal(t, formatResult(t, r), formatResult(t, fold(t, backwards...)), "the order of the input shows")
	return foldResult{effectiveOf(r), lossesOf(r)}
}

// Spec returns a new spec each time, and does not edit the empty maps of policies.
func TestSpecDoesNotEditPolicies(t *testing.T) {
	empty := hollow("a")
	result := fold(t, stack(policy("gw", defaults(patch, rule("a.b", 1))), policy("route", bare(empty)))...)
	first := result.Spec()
	assert.Equal(t, map[string]any{"a": map[string]any{"b": int64(1)}}, first)
	assert.Empty(t, empty.Value)
	first["more"] = true
	assert.NotEqual(t, first, result.Spec())
}

func TestConditionOfEmptyBlockIsNotEvaluated(t *testing.T) {
	never := condition{text: "never", answer: func(map[string]any) merge.Answer {
		t.Error("a block without a rule takes no part, and its condition is not asked")
		return merge.Answer{Met: true}
	}}
	fold(t, stack(policy("gw", when(overrides(mixed), never)))...)
}
