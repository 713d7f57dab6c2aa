package ratelimit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestValidRegularExpressions(t *testing.T) {
	for name, pattern := range map[string]string{
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
			assert.Nil(t, checkRegexp(field.NewPath("value"), pattern))
		})
	}
}

func TestInvalidRegularExpressions(t *testing.T) {
	const tooLarge = "must compile to at most 2000 instructions, not "
	for name, c := range map[string]struct{ pattern, want string }{
		"a group without end":     {`(a`, "value: Invalid value: \"(a\": does not compile: error parsing regexp: missing closing ): `(a`; use RE2 syntax"},
		"a repetition of one":     {`a**`, "value: Invalid value: \"a**\": does not compile: error parsing regexp: invalid nested repetition operator: `**`; use RE2 syntax"},
		"looking ahead":           {`(?!a)`, "value: Invalid value: \"(?!a)\": does not compile: error parsing regexp: invalid or unsupported Perl syntax: `(?!`; use RE2 syntax"},
		"a text that is no UTF-8": {"a\xff", "value: Invalid value: \"a\\xff\": does not compile: error parsing regexp: invalid UTF-8: `\xff`; use RE2 syntax"},
		"repeated too often": {`((a{10}){10}){11}`, "value: Invalid value: \"((a{10}){10}){11}\": does not compile: " +
			"error parsing regexp: invalid repeat count: `{11}`; use RE2 syntax"},
		"too many bytes":        {strings.Repeat("a", 1025), "value: Too long: may not be more than 1024 bytes"},
		"too many instructions": {`a{1000}b{1000}`, `value: Invalid value: "a{1000}b{1000}": ` + tooLarge + "2001; lower its repetition counts"},
		"a range of too many":   {`a{1,999}b{3,999}c{9}`, `value: Invalid value: "a{1,999}b{3,999}c{9}": ` + tooLarge + "4006; lower its repetition counts"},
		"many times nothing":    {`(?:a{0}){1000}b{1000}`, `value: Invalid value: "(?:a{0}){1000}b{1000}": ` + tooLarge + "2001; lower its repetition counts"},
		"too many without end":  {`(?:ab){900,}`, `value: Invalid value: "(?:ab){900,}": ` + tooLarge + "2703; lower its repetition counts"},
		"a word, repeated": {strings.Repeat("a", 200) + "(?:" + strings.Repeat("b", 400) + "){9}",
			`value: Invalid value: "` + strings.Repeat("a", 100) + `…": ` + tooLarge + "3801; lower its repetition counts"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkRegexp(field.NewPath("value"), c.pattern)
			require.NotNil(t, err)
			assert.Equal(t, c.want, err.Error())
		})
	}
}

// Short expressions that are slow to compile are charged for it: 64 expressions of a
// kilobyte took 9 seconds.
func TestSlowRegularExpressions(t *testing.T) {
	slow := "(?i)[" + strings.Repeat("b-\U0010fffe", 169) + "]"
	err := checkRegexp(field.NewPath("value"), slow)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "takes too long to compile; use fewer Unicode classes")

	one := "(?i)[b-\U0010fffe]"
	require.Nil(t, checkRegexp(field.NewPath("value"), one))
	b, n := NewBudget(), 0
	for b.take(one) {
		n++
	}
	assert.Equal(t, 16, n, "of a policy's 64 KiB")
}
