package pattern

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/tables"
)

// slow are expressions of a kilobyte that are slow to compile.
var slow = map[string]string{
	"ranges of all runes, folded":        "(?i)[" + strings.Repeat("b-\U0010fffe", 169) + "]",
	"classes of such a range":            "(?i)" + strings.Repeat("[b-\U0010fffe]", 125),
	"the same by numbers":                "(?i)[" + strings.Repeat(`b-\x{10fffe}`, 84) + "]",
	"folded by a group's flags":          "a(?s-i:b)(?mi:[" + strings.Repeat("b-\U0010fffe", 160) + "])",
	"classes of Unicode in one class":    "[" + strings.Repeat(`\PL`, 340) + "]",
	"classes of Unicode, folded":         "(?i)[" + strings.Repeat(`\pL`, 330) + "]",
	"named classes of Unicode":           "[" + strings.Repeat(`\p{Greek}`, 110) + "]",
	"ranges of the scripts of East Asia": "(?i)[" + strings.Repeat("一-龥", 140) + "]",
}

// quick are typical expressions.
var quick = map[string]string{
	"nothing":              "",
	"a word":               "^admin$",
	"a word in any case":   "(?i)^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
	"a path":               `^/v[0-9]+/(users|groups)/[^/]+$`,
	"a letter of any kind": `(?i)^[\p{L}\p{N}_-]+$`,
	"no ASCII":             `(?i)[^\x00-\x7f]`,
	"Chinese":              "(?i)[一-龥]+",
	"two ranges of all":    "(?i)[\u0100-\U0010ffff][\u0100-\\x{10ffff}]",
	"a thousand bytes":     strings.Repeat("[a-z]", 204),
	"a large range":        strings.Repeat("[b-\U0010fffe]", 120),
	"an escaped backslash": `(?i)\\pL` + strings.Repeat(`\\p`, 300),
	"a dash at the end":    "(?i)[a-",
	"a name that has an i": "(?P<i>[b-\U0010fffe])" + strings.Repeat("[b-\U0010fffe]", 110),
}

func TestSlowExpressionsExceedMaxCost(t *testing.T) {
	for name, p := range slow {
		assert.LessOrEqual(t, len(p), 1024, name)
		assert.Greater(t, Cost(p), MaxCost, name)
	}
	for name, p := range quick {
		assert.LessOrEqual(t, Cost(p), MaxCost, name)
	}
}

func TestCost(t *testing.T) {
	for p, want := range tables.Read[map[string]int](t, "testdata/tables/cost.yaml") {
		assert.Equal(t, want, Cost(p), p)
	}
}

// BenchmarkCompile compares the time of compiling with the estimate.
func BenchmarkCompile(b *testing.B) {
	for kind, all := range map[string]map[string]string{"slow": slow, "quick": quick} {
		for name, p := range all {
			b.Run(fmt.Sprintf("%s/%s", kind, strings.ReplaceAll(name, " ", "_")), func(b *testing.B) {
				for b.Loop() {
					_, _ = regexp.Compile(p)
				}
				b.ReportMetric(float64(Cost(p)), "cost")
			})
		}
	}
}
