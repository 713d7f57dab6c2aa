package cel

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/utils/lru"
)

// maxPattern is how long a regular expression may be, in bytes.
const maxPattern = 1024

// regex is a compiled pattern, or why there is none.
type regex struct {
	*regexp.Regexp
	// instructions is how many steps a text's character can take.
	instructions uint64
	err          error
}

// patterns are compiled once, not once per evaluation.
var patterns = lru.New(DefaultCacheSize)

func compilePattern(pattern string) *regex {
	if kept, ok := patterns.Get(pattern); ok {
		return kept.(*regex)
	}
	if len(pattern) > maxPattern {
		return &regex{err: fmt.Errorf("a regular expression of %d bytes; at most %d are read", len(pattern), maxPattern)}
	}
	r := newRegex(pattern)
	patterns.Add(pattern, r)
	return r
}

func newRegex(pattern string) *regex {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return &regex{err: err}
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return &regex{err: err}
	}
	compiled, err := regexp.Compile(pattern)
	return &regex{Regexp: compiled, instructions: uint64(len(program.Inst)), err: err}
}

// matches is the function of that name.
func matches(args ...ref.Val) ref.Val {
	text, ok1 := args[0].(types.String)
	pattern, ok2 := args[1].(types.String)
	if !ok1 || !ok2 {
		return types.NewErr("no such overload: %s.matches(%s)", args[0].Type().TypeName(), args[1].Type().TypeName())
	}
	r := compilePattern(string(pattern))
	if r.err != nil {
		return types.WrapErr(r.err)
	}
	return types.Bool(r.MatchString(string(text)))
}

// weighMatches is cel-go's estimate with the pattern's real size in it.
func weighMatches(args []ref.Val) uint64 {
	pattern, ok := args[1].(types.String)
	if !ok {
		return 1
	}
	return weighText(args[0]) * (1 + compilePattern(string(pattern)).instructions/4)
}
