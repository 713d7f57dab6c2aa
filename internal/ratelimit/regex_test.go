package ratelimit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/pattern"
	"overrule.dev/overrule/test/messages"
)

func TestValidRegularExpressions(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                     "",
		"a word":                      `^admin$`,
		"an address":                  `^[a-z]+@[a-z.]+$`,
		"a quoted text":               `\Q(a+`,
		"a UUID":                      `^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`,
		"a hostname":                  `^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
		"nested repetitions":          `^(a+)+$`, // no engine that runs it backtracks
		"alternatives that are equal": `(a|a)*b`,
		"an optional letter, counted": `(a?){30}a{30}`,
		"a class of Unicode":          `(\pL|\p{Greek})*`,
		"many groups in each other":   strings.Repeat("(", 340) + "a" + strings.Repeat(")*", 340),
		"as many bytes as allowed":    strings.Repeat("a", 1024),
		"as many instructions":        `a{1000}b{999}`, // and one to join the two
	} {
		t.Run(name, func(t *testing.T) {
			assert.Nil(t, checkRegexp(field.NewPath("value"), text))
		})
	}
}

func TestInvalidRegularExpressions(t *testing.T) {
	for name, c := range map[string]struct{ pattern, want string }{
		"a group without end":     {`(a`, "value: Invalid value: \"(a\""},
		"a repetition of one":     {`a**`, "value: Invalid value: \"a**\""},
		"looking ahead":           {`(?!a)`, "value: Invalid value: \"(?!a)\""},
		"a text that is no UTF-8": {"a\xff", "value: Invalid value: \"a\\xff\""},
		"repeated too often":      {`((a{10}){10}){11}`, "value: Invalid value: \"((a{10}){10}){11}\""},
		"too many bytes":          {strings.Repeat("a", 1025), "value: Too long"},
		"too many instructions":   {`a{1000}b{1000}`, `value: Invalid value: "a{1000}b{1000}"`},
		"a range of too many":     {`a{1,999}b{3,999}c{9}`, `value: Invalid value: "a{1,999}b{3,999}c{9}"`},
		"many times nothing":      {`(?:a{0}){1000}b{1000}`, `value: Invalid value: "(?:a{0}){1000}b{1000}"`},
		"too many without end":    {`(?:ab){900,}`, `value: Invalid value: "(?:ab){900,}"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkRegexp(field.NewPath("value"), c.pattern)
			require.NotNil(t, err)
			assert.Equal(t, []string{c.want}, messages.Fields(t, err))
		})
	}
}

// Short expressions that are slow to compile are charged for it: 64 expressions of a
// kilobyte took 9 seconds.
func TestSlowRegularExpressions(t *testing.T) {
	slow := "(?i)[" + strings.Repeat("b-\U0010fffe", 169) + "]"
	err := checkRegexp(field.NewPath("value"), slow)
	require.NotNil(t, err)
	assert.Equal(t, field.ErrorTypeInvalid, err.Type)
	assert.Equal(t, "takes too long to compile; "+pattern.Advice, err.Detail)

	one := "(?i)[b-\U0010fffe]"
	require.Nil(t, checkRegexp(field.NewPath("value"), one))
	b, n := new(Budget), 0
	for v := (&validator{budget: b}); len(v.errs) == 0; n++ {
		v.pattern(field.NewPath("value"), one)
	}
	assert.Equal(t, 17, n, "of a policy's 64 KiB")
}
