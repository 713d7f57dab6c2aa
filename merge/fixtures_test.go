package merge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
)

// policy builds a policy of namespace "ns". Tests set what else they need.
func policy(name string, blocks ...merge.Rules) *merge.Policy {
	return &merge.Policy{Namespace: "ns", Name: name, Blocks: blocks}
}

// unsets adds an unset list to a policy.
func unsets(t testing.TB, p *merge.Policy, names ...string) *merge.Policy {
	t.Helper()
	for _, text := range names {
		n, err := merge.ParseName(text)
		require.NoError(t, err)
		p.Unset = append(p.Unset, n)
	}
	return p
}

func defaults(s merge.Strategy, rules ...merge.Rule) merge.Rules {
	return block(merge.Defaults, s, rules)
}

func bare(rules ...merge.Rule) merge.Rules { return block(merge.Bare, merge.Atomic, rules) }

func overrides(s merge.Strategy, rules ...merge.Rule) merge.Rules {
	return block(merge.Overrides, s, rules)
}

func block(b merge.Block, s merge.Strategy, rules []merge.Rule) merge.Rules {
	slices.SortFunc(rules, func(a, b merge.Rule) int { return a.Key.Compare(b.Key) })
	return merge.Rules{Block: b, Strategy: s, Rules: rules}
}

// when puts a block under a condition.
func when(b merge.Rules, c merge.Condition) merge.Rules {
	b.When = c
	return b
}

// rule makes a rule of a key that is written as people write it.
func rule(key string, value any) merge.Rule {
	k, err := merge.ParseKey(key)
	if err != nil {
		panic(err)
	}
	if n, ok := value.(int); ok {
		value = int64(n)
	}
	return merge.Rule{Key: k, Value: value}
}

func hollow(key string) merge.Rule {
	r := rule(key, map[string]any{})
	r.EmptyMap = true
	return r
}

// condition is a merge.Condition that answers as it is told to.
type condition struct {
	text   string
	answer func(spec map[string]any) merge.Answer
}

func (c condition) Evaluate(spec map[string]any) merge.Answer { return c.answer(spec) }
func (c condition) String() string                            { return c.text }

// over is met where the number at a key of the spec is greater than a limit;
// with no such key it says which is missing.
func over(key string, limit int64) merge.Condition {
	return condition{text: fmt.Sprintf("spec.%s > %d", key, limit), answer: func(spec map[string]any) merge.Answer {
		value, missing, beside := lookup(spec, key)
		if missing != "" {
			return merge.Answer{Missing: missing, HasSiblings: beside, Cost: 1}
		}
		n, ok := value.(int64)
		if !ok {
			return merge.Answer{Err: fmt.Errorf("%s is no number", key), Cost: 1}
		}
		return merge.Answer{Met: n > limit, Cost: 1}
	}}
}

func lookup(spec map[string]any, key string) (value any, missing string, beside bool) {
	at := spec
	segments := strings.Split(key, ".")
	for i, s := range segments {
		v, ok := at[s]
		if !ok {
			return nil, strings.Join(segments[:i+1], "."), len(at) > 0
		}
		if i == len(segments)-1 {
			return v, "", false
		}
		at, _ = v.(map[string]any)
	}
	return nil, key, false
}

// stack puts policies on a path, the highest first: each a level lower.
func stack(policies ...*merge.Policy) []merge.Layer {
	out := make([]merge.Layer, len(policies))
	for i, p := range policies {
		out[i] = merge.Layer{Policy: p, Level: i}
	}
	return out
}

func fold(t testing.TB, layers ...merge.Layer) *merge.Result {
	t.Helper()
	r, err := merge.Fold(layers, nil)
	require.NoError(t, err)
	return r
}

// effectiveOf shows the rules of a result, as in "a=1 gw/overrides".
func effectiveOf(r *merge.Result) []string {
	var out []string
	for _, e := range r.Rules {
		out = append(out, fmt.Sprintf("%s=%v %s", e.Key, e.Value, at(e.From)))
	}
	return out
}

// lossesOf shows what was lost, as in "route: a bare to gw/overrides", with
// "(equal)" and "(class in force)" where that is so.
func lossesOf(r *merge.Result) []string {
	var out []string
	for _, o := range r.Outcomes {
		for _, l := range o.Lost {
			text := fmt.Sprintf("%s: %s %s to %s", o.Policy.Name, l.Key, l.Block, at(l.To))
			if l.Equal {
				text += " (equal)"
			}
			if l.InForce != nil {
				text += " (" + l.InForce.Name + " in force)"
			}
			out = append(out, text)
		}
	}
	return out
}

// countsOf shows the outcomes, as in "gw 1 of 2"; "gw silent" if no block took
// part and some condition was not met.
func countsOf(r *merge.Result) []string {
	var out []string
	for _, o := range r.Outcomes {
		text := fmt.Sprintf("%s %d of %d", o.Policy.Name, o.Rules-len(o.Lost), o.Rules)
		if o.Skipped {
			text += " silent"
		}
		out = append(out, text)
	}
	return out
}

func notesOf(r *merge.Result) []string {
	var out []string
	for _, n := range r.Notes {
		out = append(out, fmt.Sprintf("%s %s when %s: missing %q, err %v", n.Policy.Name, n.Block, n.When, n.Answer.Missing, n.Answer.Err))
	}
	return out
}

func at(o merge.Origin) string {
	if o.Policy == nil {
		return "nobody"
	}
	text := o.Policy.Name + "/" + o.Block.String()
	if o.Conditional {
		text += "?"
	}
	return text
}

// aged gives a policy its creation time, in seconds: less is older.
func aged(created int64, p *merge.Policy) *merge.Policy {
	p.Created = created
	return p
}

// on puts policies on one target, where they meet in the way that is given.
func on(level int, meet merge.Meet, policies ...*merge.Policy) []merge.Layer {
	out := make([]merge.Layer, len(policies))
	for i, p := range policies {
		out[i] = merge.Layer{Policy: p, Level: level, Meet: meet}
	}
	return out
}

// as makes a path read the bare blocks of layers in another way.
func as(b merge.Block, s merge.Strategy, layers ...merge.Layer) []merge.Layer {
	for i := range layers {
		layers[i].As = &merge.Reading{Block: b, Strategy: s}
	}
	return layers
}

// path joins the layers of a path.
func path(layers ...[]merge.Layer) []merge.Layer { return slices.Concat(layers...) }

// ranked gives a policy its place in the kind's own order.
func ranked(rank int, p *merge.Policy) *merge.Policy {
	p.Rank = rank
	return p
}
