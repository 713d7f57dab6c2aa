package merge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
)

// generator generates stacks of policies from the bytes of a fuzzer.
type generator struct {
	data []byte
	// plain: no conditions, unset lists or nulls; tidy: no rule of a block
	// is below another one.
	plain, tidy bool
}

func (d *generator) roll(sides int) int {
	if len(d.data) == 0 {
		return 0
	}
	n := int(d.data[0]) % sides
	d.data = d.data[1:]
	return n
}

var fuzzKeys = []string{"a", "a.b", "a.b.c", "a.c", `["a.b"]`, "b", "b.a", "c.a.b"}

func (d *generator) rule() merge.Rule {
	r := rule(fuzzKeys[d.roll(len(fuzzKeys))], nil)
	switch d.roll(6) {
	case 0:
		if d.plain {
			r.Value = false
		}
	case 1:
		r.Value, r.EmptyMap = map[string]any{}, true
	case 2:
		r.Value = map[string]any{"x": int64(d.roll(2))}
	case 3:
		r.Value = []any{int64(d.roll(2)), "y"}
	case 4:
		r.Value = float64(d.roll(3))
	default:
		r.Value = int64(d.roll(3))
	}
	return r
}

func (d *generator) block(b merge.Block) merge.Rules {
	var rules []merge.Rule
	for range d.roll(4) {
		r := d.rule()
		if !slices.ContainsFunc(rules, func(o merge.Rule) bool { return o.Key == r.Key || d.tidy && collide(o, r) }) {
			rules = append(rules, r)
		}
	}
	out := block(b, merge.Strategy(d.roll(3)), rules)
	if !d.plain && d.roll(4) == 0 {
		out.When = over(fuzzKeys[d.roll(4)], int64(d.roll(3)))
	}
	return out
}

// collide reports whether two rules are in the same place.
func collide(a, b merge.Rule) bool {
	return a.Key == b.Key || !a.EmptyMap && a.Key.Holds(b.Key) || !b.EmptyMap && b.Key.Holds(a.Key)
}

// layers returns a path, half of the time with groups and readings.
func (d *generator) layers(t testing.TB) []merge.Layer {
	meets := []merge.SameTarget{hierarchical}
	if rich := d.roll(6); rich > 2 {
		meets = [][]merge.SameTarget{{oldestWins}, {collect}, {hierarchical, oldestWins, collect}}[rich-3]
	}
	out := d.policies(t)
	for i := range out {
		out[i].SameTarget = meets[d.roll(len(meets))]
		if d.roll(4) == 3 {
			out[i].As = &merge.Reading{Strategy: merge.Strategy(d.roll(3))}
			if d.roll(4) == 3 {
				out[i].As.By = out[d.roll(len(out))].Policy
			}
		}
	}
	return out
}

// policies returns a path of policies at one or more levels.
func (d *generator) policies(t testing.TB) []merge.Layer {
	var out []merge.Layer
	for i := range 1 + d.roll(6) {
		if i > 0 && d.roll(5) == 0 { // an earlier policy at one more level, or again at one
			out = append(out, merge.Layer{Policy: out[d.roll(len(out))].Policy, Level: d.roll(4)})
			continue
		}
		p := policy(fmt.Sprintf("p%d", i), d.block(merge.Defaults), d.block(merge.Bare), d.block(merge.Overrides))
		p.Created, p.Rank = int64(d.roll(2)), d.roll(3)-1
		if d.roll(6) == 5 {
			p.Blocks = append(p.Blocks, d.block(merge.Object))
		}
		for range d.roll(2) {
			if !d.plain {
				unsets(t, p, []string{"a", "a.b", "c", `["a.b"]`}[d.roll(4)])
			}
		}
		out = append(out, merge.Layer{Policy: p, Level: d.roll(3)})
	}
	return out
}

func addSeeds(f *testing.F) {
	f.Add([]byte{}, uint64(1))
	for i := range uint64(24) {
		r := rand.New(rand.NewPCG(i, 7))
		data := make([]byte, 20+10*i)
		for j := range data {
			data[j] = byte(r.Uint32())
		}
		f.Add(data, i)
	}
}

// formatResult returns all fields of a result as a string.
func formatResult(t testing.TB, r *merge.Result) string {
	data, err := json.MarshalIndent([]any{r.Spec(), effectiveOf(r), lossesOf(r), countsOf(r), notesOf(r)}, "", " ")
	require.NoError(t, err)
	return string(data)
}

// Any order of the layers gives the same bytes.
func FuzzFoldOrder(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		layers := (&generator{data: data}).layers(t)
		want := formatResult(t, fold(t, layers...))
		shuffled := slices.Clone(layers)
		for i := range uint64(3) {
			rand.New(rand.NewPCG(seed, i)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			assert.Equal(t, want, formatResult(t, fold(t, shuffled...)))
		}
	})
}

// Folding a result again, as one bare policy, changes nothing.
func FuzzFoldIdempotent(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte, _ uint64) {
		first := fold(t, (&generator{data: data, plain: true, tidy: true}).layers(t)...)
		var rules []merge.Rule
		for _, e := range first.Rules {
			rules = append(rules, *e.Rule)
		}
		again := fold(t, stack(policy("again", bare(rules...)))...)
		assert.Equal(t, first.Spec(), again.Spec())
		assert.Len(t, again.Rules, len(first.Rules))
		assert.Empty(t, lossesOf(again))
	})
}

// Fold does not panic or edit its inputs, and each rule of an applied block is either
// effective or lost.
func FuzzFoldNoPanic(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte, _ uint64) {
		layers := (&generator{data: data}).layers(t)
		before := contents(t, layers)
		result := fold(t, layers...)
		_ = formatResult(t, result)
		assert.Equal(t, before, contents(t, layers), "the input was edited")
		for _, o := range result.Outcomes {
			assert.LessOrEqual(t, len(o.Lost), o.Rules)
			assert.Equal(t, keysThatTookPart(o), o.Rules, "a rule of %s was neither kept nor lost", o.Policy.Name)
			for _, l := range o.Lost {
				require.NotNil(t, l.Rule, "%s lost an unknown rule", o.Policy.Name)
				require.NotNil(t, l.To.Policy, "%s lost %s without To", o.Policy.Name, l.Key)
			}
			assert.True(t, slices.IsSortedFunc(o.Lost, func(a, b merge.Lost) int { return a.Key.Compare(b.Key) }))
		}
	})
}

func keysThatTookPart(o merge.Outcome) int {
	keys := make(map[merge.Key]bool)
	for _, b := range o.Policy.Blocks {
		if o.BlockApplied(b.Block) {
			for _, r := range b.Rules {
				keys[r.Key] = true
			}
		}
	}
	return len(keys)
}

func contents(t testing.TB, layers []merge.Layer) string {
	var all []any
	for _, l := range layers {
		for _, b := range l.Blocks {
			for _, r := range b.Rules {
				all = append(all, l.Name, b.Block, r.Key.String(), r.Value, r.EmptyMap)
			}
		}
	}
	data, err := json.Marshal(all)
	require.NoError(t, err)
	return string(data)
}

// ParseKey of String returns the same key.
func FuzzParseKey(f *testing.F) {
	for _, text := range []string{"a", "a.b", `limits["a.b"]`, `["\x00"]`, `["\xff\u2028"].a`, "['x']", "[`x y`]", "a..b", `a["b`, "[", "]", ".", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := merge.ParseKey(text)
		if err != nil {
			return
		}
		again, err := merge.ParseKey(k.String())
		require.NoError(t, err)
		assert.Equal(t, k, again)
		assert.Equal(t, k, merge.KeyOf(k.Segments()...))
		n, err := merge.ParseName(text)
		require.NoError(t, err)
		assert.True(t, n.Matches(k))
	})
}
