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

// regex is a compiled regular expression, or its error.
type regex struct {
	*regexp.Regexp
	// instructions is the maximum number of steps per character of the input.
	instructions uint64
	// extra is the cost of compiling it beyond its length, in units of cost.
	extra uint64
	err   error
}

// patterns caches compiled regular expressions.
var patterns = lru.New(maxCached)

func compilePattern(text string) *regex {
	if kept, ok := patterns.Get(text); ok {
		return kept.(*regex)
	}
	if len(text) > maxPattern {
		return &regex{err: fmt.Errorf("regular expression must have at most %d bytes, not %d", maxPattern, len(text))}
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

// errSlowPattern is the error of a short expression that is slow to compile.
var errSlowPattern = errors.New("regular expression takes too long to compile; " + pattern.Advice)

// slowPatterns returns an error if the literal patterns of an expression are together
// too slow to compile.
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

// costOfMatches is cel-go's estimate with the real size of the compiled pattern.
func costOfMatches(args []ref.Val) uint64 {
	text, ok := args[1].(types.String)
	if !ok {
		return 1
	}
	r := compilePattern(string(text))
	return costOfText(args[0])*(1+r.instructions/4) + r.extra
}
