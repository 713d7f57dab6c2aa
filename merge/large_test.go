package merge_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// randomLayers returns a path of policies of up to a hundred rules each, none of which
// is below another one of its block.
func randomLayers(t testing.TB, r *rand.Rand) []merge.Layer {
	var out []merge.Layer
	for i := range 2 + r.IntN(12) {
		p := policy(fmt.Sprintf("p%d", i), randomBlock(r, merge.Defaults), randomBlock(r, merge.Bare), randomBlock(r, merge.Overrides))
		for range r.IntN(2) * r.IntN(12) {
			unsets(t, p, fmt.Sprintf("k%02d", r.IntN(60)), fmt.Sprintf("k%02d.l%d", r.IntN(60), r.IntN(9)))
		}
		if r.IntN(9) == 0 {
			unsets(t, p, fmt.Sprintf("l%d", r.IntN(9)))
		}
		out = append(out, merge.Layer{Policy: p, Level: r.IntN(4), SameTarget: merge.SameTarget(r.IntN(3))})
		if r.IntN(4) == 0 {
			out = append(out, merge.Layer{Policy: p, Level: r.IntN(4)})
		}
	}
	return out
}

func randomBlock(r *rand.Rand, b merge.Block) merge.Rules {
	var rules []merge.Rule
	taken := make(map[string]bool)
	for range r.IntN(100) {
		first, second := fmt.Sprintf("k%02d", r.IntN(60)), fmt.Sprintf("l%d", r.IntN(9))
		key := first + "." + second
		switch {
		case taken[first] || taken[key]:
			continue
		case r.IntN(8) > 0:
			taken[key], taken[first+".*"] = true, true
		case taken[first+".*"]:
			continue
		default:
			key, taken[first] = first, true
		}
		rules = append(rules, rule(key, r.IntN(3)))
		if r.IntN(9) == 0 {
			rules[len(rules)-1] = hollow(key)
		}
	}
	return block(b, merge.Strategy(r.IntN(3)), rules)
}

// Long lists are merged by another algorithm than short ones, with the same result.
func TestFoldOfManyRulesAgreesWithReference(t *testing.T) {
	long := 0
	for seed := range uint64(150) {
		layers := randomLayers(t, rand.New(rand.NewPCG(seed, 11)))
		result := fold(t, layers...)
		assert.Equal(t, reference(layers), effectiveOf(result), "seed %d", seed)
		for _, o := range result.Outcomes {
			assert.Equal(t, keysThatTookPart(o), o.Rules, "seed %d: a rule of %s was neither kept nor lost", seed, o.Policy.Name)
		}
		if len(result.Rules) > 100 {
			long++
		}
	}
	assert.Greater(t, long, 20, "many effective policies are long")
}

// Overrides are applied even if a long block has a rule below another one.
func TestFoldOfNestedRules(t *testing.T) {
	for _, n := range []int{2, 30} {
		rules := []merge.Rule{rule("a", 1)}
		for i := range n {
			rules = append(rules, rule(fmt.Sprintf("a.b%02d", i), 1))
		}
		result := fold(t, stack(policy("gw", overrides(mixed, rule("a.c", 2))), policy("route", bare(rules...)))...)
		assert.NotNil(t, result.Outcomes[1].LostAt(rule("a", nil).Key))
		assert.Equal(t, n, result.Outcomes[1].Rules-len(result.Outcomes[1].Lost))
		assert.Equal(t, int64(2), result.At(rule("a.c", nil).Key).Value)
	}
}

// A fold reuses the buffers of an earlier one, whose result does not change.
func TestResultIsIndependentOfLaterFolds(t *testing.T) {
	var results []*merge.Result
	var stories []string
	for seed := range uint64(40) {
		result := fold(t, randomLayers(t, rand.New(rand.NewPCG(seed, 5)))...)
		results, stories = append(results, result), append(stories, formatResult(t, result))
	}
	for i, result := range results {
		assert.Equal(t, stories[i], formatResult(t, result))
	}
}

// Long unset lists are indexed, short ones are searched linearly.
func TestUnsetBy(t *testing.T) {
	tests := map[string]struct {
		stack func(unset func(*merge.Policy, ...string) *merge.Policy) []*merge.Policy
		want  []string
	}{
		"the lowest by another way of naming it": {
			stack: func(unset func(*merge.Policy, ...string) *merge.Policy) []*merge.Policy {
				return []*merge.Policy{policy("gw", defaults(mixed, rule("rules.auth.a", 1))), unset(policy("b"), "rules.auth.a"), unset(policy("c"), "a"), policy("route")}
			},
			want: []string{"gw: rules.auth.a defaults to c/unset"},
		},
		"the next one, where the lowest is the policy itself": {
			stack: func(unset func(*merge.Policy, ...string) *merge.Policy) []*merge.Policy {
				p := unset(policy("p", bare(rule("rules.auth.a", 1))), "rules.auth")
				return []*merge.Policy{p, unset(policy("b"), "rules.auth"), unset(policy("c"), "rules.auth"), p, policy("low", overrides(atomic, rule("z", 1)))}
			},
			want: []string{"p: rules.auth.a bare to c/unset"},
		},
		"none, if only the policy itself unsets it": {
			stack: func(unset func(*merge.Policy, ...string) *merge.Policy) []*merge.Policy {
				p := unset(policy("p", defaults(mixed, rule("a", 1))), "a")
				return []*merge.Policy{p, unset(policy("b"), "other"), p}
			},
		},
		"a rule whose name is empty, by its bare name": {
			stack: func(unset func(*merge.Policy, ...string) *merge.Policy) []*merge.Policy {
				return []*merge.Policy{policy("gw", defaults(mixed, rule(`a[""]`, 1))), unset(policy("b"), `[""]`)}
			},
			want: []string{`gw: a[""] defaults to b/unset`},
		},
	}
	fillers := map[string]int{"among few": 0, "among many": 30}
	for name, test := range tests {
		for among, n := range fillers {
			t.Run(name+", "+among, func(t *testing.T) {
				unset := func(p *merge.Policy, names ...string) *merge.Policy {
					for i := range n {
						names = append(names, fmt.Sprintf("filler%d", i))
					}
					return unsets(t, p, names...)
				}
				assert.Equal(t, test.want, lossesOf(fold(t, stack(test.stack(unset)...)...)))
			})
		}
	}
}
