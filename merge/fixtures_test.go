package merge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
)

// policy returns a policy of namespace "ns".
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

// when sets the condition of a block.
func when(b merge.Rules, c merge.Condition) merge.Rules {
	b.When = c
	return b
}

// rule returns a rule with a key in the format of ParseKey.
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

// condition is a merge.Condition with a given answer.
type condition struct {
	text   string
	answer func(spec map[string]any) merge.Answer
}

func (c condition) Evaluate(spec map[string]any) merge.Answer { return c.answer(spec) }
func (c condition) String() string                            { return c.text }

// over returns a condition that is met if the number at a key is greater than a limit. Its
// answer has the missing key if there is none.
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

// stack returns a path of policies, the highest first, each on its own level.
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

// effectiveOf returns the rules of a result, such as "a=1 gw/overrides".
func effectiveOf(r *merge.Result) []string {
	var out []string
	for _, e := range r.Rules {
		out = append(out, fmt.Sprintf("%s=%v %s", e.Key, e.Value, at(e.From)))
	}
	return out
}

// lossesOf returns the lost rules, such as "route: a bare to gw/overrides", with "(equal)"
// and "(class in force)" if set.
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

// countsOf returns the outcomes, such as "gw 1 of 2", or "gw silent" if no block was applied
// because of a condition.
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
		return "none"
	}
	text := o.Policy.Name + "/" + o.Block.String()
	if o.Conditional {
		text += "?"
	}
	return text
}

// on returns layers of policies on the same target.
func on(level int, meet merge.SameTarget, policies ...*merge.Policy) []merge.Layer {
	out := make([]merge.Layer, len(policies))
	for i, p := range policies {
		out[i] = merge.Layer{Policy: p, Level: level, SameTarget: meet}
	}
	return out
}

// as sets how the bare blocks of layers are applied.
func as(s merge.Strategy, layers ...merge.Layer) []merge.Layer {
	for i := range layers {
		layers[i].As = &merge.Reading{Strategy: s}
	}
	return layers
}

// path concatenates the layers of a path.
func path(layers ...[]merge.Layer) []merge.Layer { return slices.Concat(layers...) }
