package webhook

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

// long is the longest name that an object can have.
var long = strings.Repeat("a", 120) + "-middle-" + strings.Repeat("z", 125)

func TestWarningLength(t *testing.T) {
	shortened := strings.Repeat("a", 30) + "…" + strings.Repeat("z", 29)
	for name, c := range map[string]struct {
		what, advice, want string
	}{
		"short: what happened and what to do": {
			"x has no effect", "ask its owner", "x has no effect; ask its owner",
		},
		"exactly as long as it may be": {
			strings.Repeat("é", 200), strings.Repeat("y", 54), strings.Repeat("é", 200) + "; " + strings.Repeat("y", 54),
		},
		"too long by one: the advice goes": {
			strings.Repeat("é", 200), strings.Repeat("y", 55), strings.Repeat("é", 200),
		},
		"still too long: names are shortened in the middle": {
			"limits.login has no effect: RateLimitPolicy infra/" + long + " overrides it on Gateway infra/edge", "ask",
			"limits.login has no effect: RateLimitPolicy infra/" + strings.Repeat("a", 24) + "…" + strings.Repeat("z", 29) + " overrides it on Gateway infra/edge",
		},
		"several long names": {
			long + " loses " + long + " to " + long, "", shortened + " loses " + shortened + " to " + shortened,
		},
		"still too long: groups of kinds go before names are cut": {
			"effective policies of AuthPolicy.kuadrant.io in " + strings.Repeat("team-alpha-production-west, ", 7) + "and three others", "ask",
			"effective policies of AuthPolicy in " + strings.Repeat("team-alpha-production-west, ", 7) + "and three others",
		},
		"no names to shorten: the end is cut": {
			strings.Repeat("word ", 60), "", strings.Repeat("word ", 51) + "…",
		},
		"control characters, marks of direction and unusual spaces are spaces": {
			"rule \"a\x1b[31m\nb\r\tc\u202ed\u200fe\u00a0f\u2028g\x00h\x7fi\u0085j\"", "", `rule "a [31m b c d e f g h i j"`,
		},
		"bytes that are no text": {"a\xff\xfeb", "", "a\ufffd\ufffdb"},
		"nothing":                {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := warning(guard.Finding{What: c.what, Advice: c.advice})
			assert.Equal(t, c.want, got)
		})
	}
}

func TestAmbiguousGroupsStay(t *testing.T) {
	const two = "Policy.a.example.com app/one loses to Policy.b.example.com app/two"
	assert.Equal(t, two, withoutGroups(two))
	assert.Equal(t, two+" on Gateway infra/edge", withoutGroups(two+" on Gateway.networking.k8s.io infra/edge"))
	assert.Equal(t, "Policy app/one loses to Other app/two", withoutGroups("Policy.a.example.com app/one loses to Other.b.example.com app/two"))
}

func FuzzWarning(f *testing.F) {
	f.Add("x has no effect", "ask its owner")
	f.Add(long+" "+long, "\x1b[0m")
	f.Add("\u202e\xff", strings.Repeat("é ", 200))
	f.Fuzz(func(t *testing.T, what, advice string) {
		got := warning(guard.Finding{What: what, Advice: advice})
		require.LessOrEqual(t, utf8.RuneCountInString(got), warningLength)
		require.True(t, utf8.ValidString(got))
		require.False(t, strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", got)
	})
}

func findings(n int, what string) []guard.Finding {
	out := make([]guard.Finding, n)
	for i := range out {
		out[i].What = fmt.Sprintf("%s %d", what, i)
	}
	return out
}

func TestWarningCount(t *testing.T) {
	assert.Nil(t, warnings(nil, nil))
	assert.Len(t, warnings(nil, findings(10, "x")), 10)

	got := warnings(nil, findings(11, "x"))
	require.Len(t, got, 11)
	assert.Equal(t, "x 9", got[9])
	assert.Equal(t, "and 1 more; to list all, run kubectl overrule check -f", got[10])

	assertNames(t, warnings(nil, findings(2000, "x"))[10], []string{"1990 more"})
}

func TestWarningTotal(t *testing.T) {
	total := 0
	for _, line := range warnings(nil, findings(2000, strings.Repeat("wörd ", 50))) {
		total += utf8.RuneCountInString(line)
	}
	assert.LessOrEqual(t, total, warningTotal)
}

// A denial that does not deny says all that it would say if it did.
func TestDenialsAsWarningsAreWhole(t *testing.T) {
	f := guard.Finding{Code: api.ReasonOverrideEvaded, What: strings.TrimSpace(strings.Repeat("wörd ", 100)), Advice: "ask " + strings.Repeat("x", 300)}
	got := warnings([]guard.Finding{f}, findings(1, "x"))
	last := len(got) - 1
	assert.Equal(t, "x 0", got[last])
	whole := ""
	for _, line := range got[:last] {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), warningLength)
		whole += strings.TrimSuffix(strings.TrimPrefix(line, "… "), " …")
	}
	without := func(s string) string { return strings.ReplaceAll(s, " ", "") }
	assert.Equal(t, without("would be denied: OverrideEvaded: "+f.Message()), without(whole))
}

func TestLongConstraintUsesShortText(t *testing.T) {
	f := guard.Finding{
		Code: api.ReasonConstraintViolated, What: "limits.login: " + strings.Repeat("x", 300), Advice: "change it",
		Short: "limits.login is not allowed by RateLimitPolicy infra/gw-limits",
	}
	assert.Equal(t, f.Short, warning(f))
	f.What = "limits.login: 5"
	assert.Equal(t, "limits.login: 5; change it", warning(f))
}
