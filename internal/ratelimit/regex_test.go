package ratelimit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const exponentially = "can match one text in exponentially many ways, as (a+)+ and (a|a)* can: " +
	"a repetition holds another one, or alternatives that match the same; " +
	"write it so that there is one way, as a+ and a* are"

func TestExpressionsThatAreExponentialAreRefused(t *testing.T) {
	for name, pattern := range map[string]string{
		"a repetition in a repetition":                        `(a+)+$`,
		"one in a group that does not capture":                `(?:a+)+$`,
		"one in a group with a name":                          `(?P<x>a*)*`,
		"one in a group with flags":                           `(?i:a+)+`,
		"one that need not take as much as it can":            `(a+?)+?b`,
		"a repetition in the third one":                       `((a*)*)*`,
		"two alternatives that are the same":                  `(a|a)*b`,
		"two in a group that does not capture":                `(?:a|a)*b`,
		"two words that are the same":                         `(?:ab|ab)+`,
		"one alternative is a part of another, repeated":      `(a|aa)+$`,
		"two words that make a third":                         `(a|b|ab)*c`,
		"classes that overlap":                                `([a-m]|[m-z])*`,
		"a class that overlaps a letter":                      `(a|[[:alpha:]])+`,
		"alternatives that differ in case, which is folded":   `(?i)(a|A)*`,
		"flags that reach the next alternative":               `(?:(?i)b|B)+`,
		"a class of Unicode and one within":                   `(\pL|\p{Greek})*`,
		"a letter whose case is folded, and one whose is not": `((?i:a)|a)*`,
		"any letter or a line feed, which is one":             `(?s)(.|\n)*`,
		"at a boundary that is there":                         `(a(-|\b-))*`,
		"at no boundary where there is none":                  `(a(b|\Bb))*`,
		"what begins a line behind another":                   `(?m)(^\n+)*`,
		"a letter or none, counted":                           `(a{0,1}){12}`,
		"some that may each be nothing, counted":              `(()a?^*){12}`,
		"any letter, and one":                                 `(.*a)*`,
		"fields between commas, taken by anything":            `^(.*,)*P`,
		"words with a space that may be missing":              `(\w+\s?)*$`,
		"words between spaces that may be missing":            `^(\s*\w+\s*)*$`,
		"two repetitions in one":                              `(x+x+)+y`,
		"two that may each be missing":                        `(a?b?)*c`,
		"two repetitions that may each be missing":            `(a*b*)*`,
		"two ways to take nothing":                            `((|)a)*`,
		"a repetition of what ends a line in the middle":      `(?m)(\n+$)*`,
		"a repetition within a counted one":                   `^(.*,){11}P`,
		"a counted one within a counted one":                  `([0-9]{1,3}){1,12}`,
		"letters that may be missing, counted":                `(a?){30}a{30}`,
		"what may take nothing, counted":                      `(a*|^b){10,}`,
		"a path of a URL":                                     `^(https?://)?([\da-z.-]+)\.([a-z.]{2,6})([/\w .-]*)*/?$`,
		"one beside a quoted text":                            `\Q(\E(a+)+`,
		"one before a quoted text without end":                `(a+)+\Q(b`,
		"one beside a class with brackets":                    `[]()[:alpha:]\]|]((a+)+)`,
		"one beside a class of all but a bracket":             `[^](](a+)+`,
	} {
		t.Run(name, func(t *testing.T) {
			steps := mostSteps
			assert.EqualError(t, checkRegexp(pattern, &steps), exponentially)
		})
	}
}

func TestExpressionsThatHaveFewWaysAreTaken(t *testing.T) {
	for name, pattern := range map[string]string{
		"nothing":                                  "",
		"a word":                                   `^admin$`,
		"a repetition":                             `a+`,
		"two repetitions of the same":              `a*a*`, // n ways, no more
		"a repetition that ends in another word":   `([a-z]+\.)+example`,
		"an address":                               `^[a-z]+@[a-z.]+$`,
		"a repetition with its end":                `(a*b)*`,
		"words":                                    `(foo|bar|fob)*`,
		"words of which one starts another":        `(a|ab)*`,
		"a letter or nothing":                      `(a?)*`, // no engine takes nothing again and again
		"a letter, nothing or another":             `(a||b)*`,
		"cases that are told apart":                `(a|A)*`,
		"flags that end with their group":          `(?:(?i:b)|c|C)+`,
		"flags of an outer group":                  `(?:(?i)(?:b)|c)+`,
		"flags taken back":                         `(?i)(a|(?-i)b|B)*`,
		"words between boundaries":                 `(\b\w+\b\s*)+`,
		"letters not at a boundary":                `(\w+\B-)+`,
		"lines":                                    `(?m)(^a+$)*`,
		"what ends the text, repeated":             `(a+$)*`,
		"any letter or a line feed, which is none": `(.|\n)*`,
		"at a boundary that is not there":          `(a(b|\bb))*`,
		"at no boundary where there is one":        `(a(-|\B-))*`,
		"what begins a line in the middle":         `(?m)(^a+)*`,
		"what ends a line in the middle":           `(?m)(a+$)*`,
		"a word, counted":                          `(ab){12}`,
		"a word that has a letter that may be missing, counted": `(a?b){12}`,
		"a counted repetition":                   `^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`,
		"a counted one in a repetition":          `([0-9a-f]{16}-?)+`,
		"a counted repetition without end":       `(a{12}){5,}`,
		"a repetition in one that counts to few": `(a+){1,3}`,
		"a thousand letters":                     `a{1000}`,
		"a quoted text that looks exponential":   `\Q(a+)+`,
		"a class that looks exponential":         `[(a+)+]+`,
		"a hostname":                             `^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
		"a semantic version": `^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
			`(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?` +
			`(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`,
		"two hundred words": words(200),
	} {
		t.Run(name, func(t *testing.T) {
			steps := mostSteps
			assert.NoError(t, checkRegexp(pattern, &steps))
		})
	}
}

func TestExpressionsThatCannotBeJudgedAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ pattern, want string }{
		"a group without end":     {`(a`, "does not compile: error parsing regexp: missing closing ): `(a`; write an expression of RE2"},
		"a repetition of one":     {`a**`, "does not compile: error parsing regexp: invalid nested repetition operator: `**`; write an expression of RE2"},
		"looking ahead":           {`(?!a)`, "does not compile: error parsing regexp: invalid or unsupported Perl syntax: `(?!`; write an expression of RE2"},
		"a text that is no UTF-8": {"a\xff", "does not compile: error parsing regexp: invalid UTF-8: `\xff`; write an expression of RE2"},
		"too many bytes":          {strings.Repeat("a", 1025), "is an expression of 1025 bytes: at most 1024, write a shorter one"},
		"too many instructions":   {`a{1000}b{1000}c`, "is an expression of 2002 instructions: at most 2000, repeat less often"},
		"a range of too many":     {`a{1,999}b{3,999}c{9}`, "is an expression of 4006 instructions: at most 2000, repeat less often"},
		"one that is nested in depth": {strings.Repeat("(", 340) + "a" + strings.Repeat(")*", 340),
			"is too large to be looked into: write it with fewer alternatives and repetitions, or as several conditions"},
		"one with too many ways on": {optional(300),
			"is too large to be looked into: write it with fewer alternatives and repetitions, or as several conditions"},
		"one with too many ways through nothing": {`(` + strings.Repeat(`(\b|)`, 30) + `$a)*`,
			"is too large to be looked into: write it with fewer alternatives and repetitions, or as several conditions"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := mostSteps
			assert.EqualError(t, checkRegexp(c.pattern, &steps), c.want)
		})
	}
}

// All the expressions of a limit share the steps.
func TestStepsAreTaken(t *testing.T) {
	steps := 300
	assert.NoError(t, checkRegexp(`(foo|bar)*`, &steps))
	assert.Less(t, steps, 300)
	steps = 3
	assert.Equal(t, errSteps, checkRegexp(`(foo|bar)*`, &steps))
	assert.Equal(t, errSteps, checkRegexp(`a{2}`, &steps), "none are left")
}

// optional letters with an end, repeated: each leads to all that follow.
func optional(n int) string {
	var out strings.Builder
	out.WriteString("(")
	for i := range n {
		out.WriteRune(rune(0x400 + i))
		out.WriteString("?")
	}
	return out.String() + "z)*"
}

func words(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%c%c%c", 'a'+i%26, 'a'+i/26, 'a'+i*7%26)
	}
	return "^(" + strings.Join(all, "|") + ")*$"
}
