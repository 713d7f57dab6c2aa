package gateway

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func prefix(value string) condition { return condition{op: underPrefix, value: value} }
func exact(value string) condition  { return condition{op: exactly, value: value} }

func TestCommonText(t *testing.T) {
	for name, row := range map[string]struct {
		met, unmet []condition
		part       string    // that of a header if empty
		want       string    // "" for none
		unknown    existence // why not, if it is not known
	}{
		"a prefix and an expression":            {met: []condition{prefix("/admin"), regexCondition("/[a-z]+/users")}, want: "/admin/users"},
		"a longer element than the prefix":      {met: []condition{prefix("/admin"), regexCondition("/admins?/[ab]")}, want: "/admin/a"},
		"without a common beginning":            {met: []condition{prefix("/admin"), regexCondition("/[b-z]+/users")}},
		"two expressions":                       {met: []condition{regexCondition("[a-m]{3}[0-9]{3}"), regexCondition("(abc|xyz)+12[3-5]")}, want: "abc123"},
		"two without a common end":              {met: []condition{regexCondition("a+b"), regexCondition("a+c")}},
		"without regard to case":                {met: []condition{regexCondition("(?i)k"), regexCondition("[^a-zA-Z]")}, want: "\u212a"},
		"a boundary of words":                   {met: []condition{regexCondition(`a\b.b`), regexCondition("a[xb-]b")}, want: "a-b"},
		"a beginning within":                    {met: []condition{regexCondition("(^|x)a"), regexCondition(".a")}, want: "xa"},
		"what others do not take":               {met: []condition{regexCondition("[a-c]")}, unmet: []condition{exact("a"), regexCondition("[bx]")}, want: "c"},
		"what others take":                      {met: []condition{regexCondition("[a-c]")}, unmet: []condition{exact("a"), regexCondition("[bc]")}},
		"characters that no path has":           {met: []condition{regexCondition("/a[?#]")}, part: partPath},
		"the same in a header":                  {met: []condition{regexCondition("/a[?#]")}, want: "/a#"},
		"control characters in a path":          {met: []condition{regexCondition(`a[\n\x00-\x1f\x7f]`)}, part: partPath},
		"in a header":                           {met: []condition{regexCondition(`a[\n\x00-\x1f\x7f]`)}, want: "a\t"},
		"in a parameter":                        {met: []condition{regexCondition(`a\n+`)}, part: partParam, want: "a\n"},
		"an expression that cannot be read":     {met: []condition{regexCondition("(?=a)a"), exact("a")}, unknown: unread},
		"two of very many states":               {met: []condition{regexCondition("(.*a.{12}){9}c"), regexCondition("(.*b.{12}){9}d")}},
		"what no text of a part has":            {met: []condition{prefix("/shop"), regexCondition(`/.*a.{14}\x01`)}, part: partPath},
		"a long text":                           {met: []condition{prefix("/a"), regexCondition("/[a-c]/x{1000}[^x]")}, want: "/a/" + strings.Repeat("x", 1000) + "a"},
		"what another one of many states takes": {met: []condition{regexCondition("[ab]*")}, unmet: []condition{regexCondition("(.*a.{14}|b|[^x]*)")}},
		"one that takes too long":               {met: []condition{regexCondition("[a-t]*")}, unmet: []condition{regexCondition("[^a]*|[^b]*|[^c]*|[^d]*|[^e]*|[^f]*|[^g]*|[^h]*|[^i]*|[^j]*|[^k]*|[^l]*|[^m]*|[^n]*|[^o]*|[^p]*|[^q]*|[^r]*|[^s]*|[^t]*")}, unknown: unsearched},
		"one that is too large":                 {met: []condition{regexCondition(".{1000}.{1000}.{1000}.{1000}.{1000}"), exact("a")}, unknown: unread},
		"one that is not needed to be read":     {met: []condition{regexCondition("[a-c]")}, unmet: []condition{regexCondition("(?=a)b")}, want: "a"},
		"one that cannot be read under prefix":  {met: []condition{prefix("/a"), regexCondition("(?=a)a")}, want: "/a/" + regexCondition("(?=a)a").regex.String()[len("^(?s:.*)"):len("^(?s:.*)")+len(freeText)+16]},
	} {
		t.Run(name, func(t *testing.T) {
			memo := &routerMemo{texts: &textMemo{}}
			got, d := memo.commonText(row.met, row.unmet, cmp.Or(row.part, partHeader))
			assert.Equal(t, row.want, got)
			assert.Equal(t, cmp.Or(row.unknown, existsIf(row.want != "")), d)
			assert.Less(t, memo.work, 2*maxTextSteps/stepsPerWork)
		})
	}
}

// A text is found if and only if one of a small alphabet meets the conditions.
func TestCommonTextOfRandomExpressions(t *testing.T) {
	all := []string{""}
	for i := 0; len(all[i]) < 5; i++ {
		for _, c := range "abc" {
			all = append(all, all[i]+string(c))
		}
	}
	r := rand.New(rand.NewPCG(1, 30))
	var expression func(depth int) string
	expression = func(depth int) string {
		if depth == 0 {
			return string("abc"[r.IntN(3)])
		}
		a, b := expression(depth-1), expression(depth-1)
		return []string{a + b, "(?:" + a + "|" + b + ")", "(?:" + a + ")?" + b, a, "[ab]" + b, `(?:` + a + `\B` + b + `)`}[r.IntN(6)]
	}
	found := make(map[bool]int)
	for range 2000 {
		var met, unmet []condition
		var texts []string
		for range 2 {
			met = append(met, regexCondition(expression(2)))
			unmet = append(unmet, regexCondition(expression(1)))
		}
		for _, text := range all {
			if met[0].meets(text) && met[1].meets(text) && !unmet[0].meets(text) && !unmet[1].meets(text) {
				texts = append(texts, text)
			}
		}
		got, d := (&routerMemo{texts: &textMemo{}}).commonText(met, unmet, partPath)
		require.Equal(t, existsIf(len(texts) > 0), d, "%v without %v: %q", met, unmet, texts)
		if d == exists {
			require.Contains(t, texts, got)
		}
		found[d == exists]++
	}
	assert.Greater(t, min(found[true], found[false]), 200)
}

// What stands for an expression that cannot be read is not shown.
func TestTextsOfUnreadExpressionsAreNotShown(t *testing.T) {
	c := regexCondition("(?=a).*")
	value, d := meet([]condition{prefix("/a"), c}, nil, partPath, &routerMemo{texts: &textMemo{}})
	require.Equal(t, exists, d)
	q := (&Request{Path: value, Headers: []Field{{"h", value}}, Query: []Field{{"q", value}}}).withoutFreeTexts()
	assert.Equal(t, "/a/*", q.Path)
	assert.NotContains(t, q.Headers[0].Value+q.Query[0].Value, freeText)
}
