package ratelimit

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An expression is exponential just if two ways lead over one text from a state
// back to that state. Here the ways are counted, over all texts of up to eight
// letters, for small expressions: any way to find out has to say the same.
func TestAmbiguityIsWhatCountingTheWaysSays(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 2))
	told := map[bool]int{}
	for range 3000 {
		pattern := anExpression(random, 4)
		parsed, err := syntax.Parse(spellOut(pattern), syntax.Perl)
		require.NoError(t, err, pattern)
		prog, err := syntax.Compile(parsed.Simplify())
		require.NoError(t, err, pattern)
		steps := mostSteps
		got, err := newAmbiguity(prog, &steps).exponential()
		require.NoError(t, err, pattern)
		require.Equal(t, twoWaysBack(prog), got, pattern)
		told[got]++
	}
	assert.Greater(t, told[true], 300)
	assert.Greater(t, told[false], 300)
}

// anExpression of the letters a and b.
func anExpression(random *rand.Rand, depth int) string {
	leaves := []string{"a", "b", "[ab]", "ab", "()"}
	if depth == 0 {
		return leaves[random.IntN(len(leaves))]
	}
	part := func() string { return anExpression(random, depth-1) }
	switch random.IntN(6) {
	case 0:
		return leaves[random.IntN(len(leaves))]
	case 1:
		return part() + part()
	case 2:
		return "(?:" + part() + "|" + part() + ")"
	case 3:
		return "(?:" + part() + ")?"
	default:
		return "(?:" + part() + ")" + []string{"*", "+"}[random.IntN(2)]
	}
}

// ways counts how many lead from one state to another.
type ways map[[2]uint32]int

func twoWaysBack(prog *syntax.Prog) bool {
	var step [2]ways
	for i, letter := range "ab" {
		step[i] = waysOver(prog, letter)
	}
	texts := []ways{step[0], step[1]}
	for range 8 {
		var longer []ways
		for _, text := range texts {
			for pair, n := range text {
				if pair[0] == pair[1] && n > 1 {
					return true
				}
			}
			longer = append(longer, text.then(step[0]), text.then(step[1]))
		}
		texts = longer
	}
	return false
}

// then counts no more than two: more are not asked for.
func (w ways) then(step ways) ways {
	out := ways{}
	for first, n := range w {
		for second, m := range step {
			if first[1] == second[0] {
				pair := [2]uint32{first[0], second[1]}
				out[pair] = min(2, out[pair]+n*m)
			}
		}
	}
	return out
}

// waysOver a letter: from a state that takes it, through what takes none, by no
// branch twice, to the next state.
func waysOver(prog *syntax.Prog, letter rune) ways {
	out := ways{}
	for from := range prog.Inst {
		if !takes(&prog.Inst[from]) || !prog.Inst[from].MatchRune(letter) {
			continue
		}
		var follow func(pc uint32, gone map[[2]uint32]bool)
		follow = func(pc uint32, gone map[[2]uint32]bool) {
			if takes(&prog.Inst[pc]) {
				out[[2]uint32{uint32(from), pc}]++
				return
			}
			for _, to := range outs(&prog.Inst[pc]) {
				branch := [2]uint32{pc, to}
				if gone[branch] {
					continue
				}
				gone[branch] = true
				follow(to, gone)
				delete(gone, branch)
			}
		}
		follow(prog.Inst[from].Out, map[[2]uint32]bool{})
	}
	return out
}

func TestSpellingOutChangesNoMeaning(t *testing.T) {
	for name, c := range map[string]struct{ pattern, want string }{
		"nothing":                       {``, `()`},
		"a word":                        {`ab`, `(ab)`},
		"alternatives":                  {`a|b|`, `(a)|(b)|()`},
		"a group":                       {`(a|b)+c`, `(((a)|(b))+c)`},
		"a group that does not capture": {`(?:a+)+`, `((?:(a+))+)`},
		"groups with names":             {`(?P<x>a)(?<y>b)`, `((?P<x>(a))(?<y>(b)))`},
		"flags of a group":              {`(?i-s:a|b)`, `((?i-s:(a)|(b)))`},
		"flags for all behind":          {`a(?i)b|c(?-i)|d`, `(a(?i)b)|((?i)c(?-i))|((?i)(?-i)d)`},
		"flags of a group alone":        {`((?i)a|b)|c`, `((((?i)a)|((?i)b)))|(c)`},
		"what is escaped":               {`\(\|\)\[\\`, `(\(\|\)\[\\)`},
		"what is quoted":                {`\Q(|\E|a`, `(\Q(|\E)|(a)`},
		"what is quoted to the end":     {`a|\Q(|`, `(a)|(\Q(|\E)`},
		"classes":                       {`[(|)]|[]|]|[^]|]|[[:alpha:]|]|[\]|]|[[|]`, `([(|)])|([]|])|([^]|])|([[:alpha:]|])|([\]|])|([[|])`},
		"a class of Unicode":            {`\p{Greek}|\x{1F600}|é`, `(\p{Greek})|(\x{1F600})|(é)`},
	} {
		t.Run(name, func(t *testing.T) {
			got := spellOut(c.pattern)
			assert.Equal(t, c.want, got)
			regexp.MustCompile(got)
		})
	}
}
