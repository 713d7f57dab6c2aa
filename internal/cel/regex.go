package cel

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/utils/lru"

	"overrule.dev/overrule/internal/pattern"
)

// maxPattern is how long a regular expression may be, in bytes.
const maxPattern = 1024

// regex is a compiled pattern, or why there is none.
type regex struct {
	*regexp.Regexp
	// instructions is how many steps a text's character can take.
	instructions uint64
	// extra is what compiling it takes beyond what its length says, in units of cost.
	extra uint64
	err   error
}

// patterns are compiled once, not once per evaluation.
var patterns = lru.New(DefaultCacheSize)

func compilePattern(text string) *regex {
	if kept, ok := patterns.Get(text); ok {
		return kept.(*regex)
	}
	if len(text) > maxPattern {
		return &regex{err: fmt.Errorf("a regular expression of %d bytes; at most %d are read", len(text), maxPattern)}
	}
	cost := pattern.Cost(text)
	if cost > pattern.MaxCost {
		return &regex{err: errSlowPattern}
	}
	r := newRegex(text)
	r.extra = uint64(cost-len(text)) / 2 //nolint:gosec // it costs at least its length
	patterns.Add(text, r)
	return r
}

// errSlowPattern is that of an expression that is short and takes long to compile.
var errSlowPattern = errors.New("regular expressions that take too long to compile; " + pattern.Advice)

// slowPatterns returns an error if the patterns that an expression spells out take
// too long to compile together.
func slowPatterns(literals []string) error {
	cost := 0
	for _, text := range literals {
		if cost += pattern.Cost(text) - len(text); cost > pattern.MaxCost/2 {
			return errSlowPattern
		}
	}
	return nil
}

func newRegex(text string) *regex {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return &regex{err: err}
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return &regex{err: err}
	}
	compiled, err := regexp.Compile(text)
	return &regex{Regexp: compiled, instructions: uint64(len(program.Inst)), err: err}
}

// matches is the function of that name.
func matches(args ...ref.Val) ref.Val {
	in, ok1 := args[0].(types.String)
	text, ok2 := args[1].(types.String)
	if !ok1 || !ok2 {
		return types.NewErr("no such overload: %s.matches(%s)", args[0].Type().TypeName(), args[1].Type().TypeName())
	}
	r := compilePattern(string(text))
	if r.err != nil {
		return types.WrapErr(r.err)
	}
	return types.Bool(r.MatchString(string(in)))
}

// weighMatches is cel-go's estimate with the pattern's real size in it.
func costOfMatches(args []ref.Val) uint64 {
	text, ok := args[1].(types.String)
	if !ok {
		return 1
	}
	r := compilePattern(string(text))
	return costOfText(args[0])*(1+r.instructions/4) + r.extra
}
