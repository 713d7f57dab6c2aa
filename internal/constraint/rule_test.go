package constraint_test

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/test/messages"
)

// unmet evaluates a constraint with one rule.
func unmet(t *testing.T, rule, spec string) []constraint.Unmet {
	t.Helper()
	got, err := evaluate(valid(t, "rules: ["+rule+"]"), effective(t, spec), &meter{})
	require.NoError(t, err)
	return got
}

// assertUnmet compares requirements that are not met with the start of what they say:
// their field path, and the location and value of each violation. A bound that a value
// cannot be compared with is "incomparable".
func assertUnmet(t *testing.T, want []string, got []constraint.Unmet) {
	t.Helper()
	messages.Golden(t)
	require.Len(t, got, len(want), "%v", got)
	for i, u := range got {
		messages.Golden(t, u.At+": "+u.Message)
		at := u.At
		if len(u.Beyond) > 0 && u.Beyond[0] == nil && (strings.HasSuffix(at, ".min") || strings.HasSuffix(at, ".max")) {
			at += " incomparable"
		}
		place, text, _ := strings.Cut(want[i], ": ")
		assert.Equal(t, place, at)
		parts := strings.Split(text, "; ")
		assert.Regexp(t, "^"+regexp.QuoteMeta(parts[0])+"([,: ]|$)", u.Message)
		for _, part := range parts[1:] {
			assert.Contains(t, u.Message, part)
		}
	}
}

func TestRules(t *testing.T) {
	cases := map[string]struct {
		rule, spec string
		want       []string
	}{
		"a number within bounds":              {"{path: a, min: 1, max: 10}", "a: 10", nil},
		"one above":                           {"{path: a, max: 10}", "a: 11", []string{"spec.rules[0].max: a is 11"}},
		"one above by a fraction":             {"{path: a, max: 10}", "a: 10.5", []string{"spec.rules[0].max: a is 10.5"}},
		"one below":                           {"{path: a, min: '0.5'}", "a: 0.25", []string{"spec.rules[0].min: a is 0.25"}},
		"a large number to the last digit":    {"{path: a, max: '9007199254740992'}", "a: 9007199254740993", []string{"spec.rules[0].max: a is 9007199254740993"}},
		"a number that is a text":             {"{path: a, max: 10}", "a: '11'", []string{`spec.rules[0].max: a is "11"`}},
		"no value":                            {"{path: a, max: 10}", "b: 11", nil},
		"a null is no value":                  {"{path: a, max: 10}", "a: null", nil},
		"a text where a number is due":        {"{path: a, max: 10}", "a: many", []string{`spec.rules[0].max incomparable: a is "many"`}},
		"a list where a number is due":        {"{path: a, min: 10}", "a: [11]", []string{`spec.rules[0].min incomparable: a is [11]`}},
		"true where a number is due":          {"{path: a, max: 10}", "a: true", []string{`spec.rules[0].max incomparable: a is true`}},
		"a duration where a number is due":    {"{path: a, max: 10}", "a: 5s", []string{`spec.rules[0].max incomparable: a is "5s"`}},
		"an astronomic number":                {"{path: a, max: 10}", "a: '1e999999999'", []string{`spec.rules[0].max incomparable: a is "1e999999999"`}},
		"an endless number":                   {"{path: a, max: 10}", "a: '0" + strings.Repeat("0", 64) + "'", []string{`spec.rules[0].max incomparable: a is "0` + strings.Repeat("0", 64) + `"`}},
		"a quantity within bounds":            {"{path: a, max: 1Gi}", "a: 1024Mi", nil},
		"a quantity above":                    {"{path: a, max: 1Gi}", "a: 1025Mi", []string{`spec.rules[0].max: a is "1025Mi"`}},
		"a small quantity below":              {"{path: a, min: 500m}", "a: 250m", []string{`spec.rules[0].min: a is "250m"`}},
		"a number is a quantity":              {"{path: a, max: 1Ki}", "a: 1025", []string{"spec.rules[0].max: a is 1025"}},
		"a duration is no quantity":           {"{path: a, max: 1Gi}", "a: 1s", []string{`spec.rules[0].max incomparable: a is "1s"`}},
		"a duration within bounds":            {"{path: a, min: 1s, max: 1m30s}", "a: 90s", nil},
		"a duration above":                    {"{path: a, max: 1m30s}", "a: 91s", []string{`spec.rules[0].max: a is "91s"`}},
		"a number is no duration":             {"{path: a, max: 30s}", "a: 10", []string{"spec.rules[0].max incomparable: a is 10"}},
		"zero is a duration":                  {"{path: a, max: 30s}", "a: '0'", nil},
		"minutes, or thousandths: a duration": {"{path: a, max: 5m}", "a: 301s", []string{`spec.rules[0].max: a is "301s"`}},
		"minutes beside hours":                {"{path: a, min: 5m, max: 1h}", "a: 4m", []string{`spec.rules[0].min: a is "4m"`}},

		"any name":                 {"{path: 'limits.*.max', max: 10}", "limits: {a: {max: 5}, b: {max: 11}, c: {}}", []string{"spec.rules[0].max: limits.b.max is 11"}},
		"any item":                 {"{path: 'rates[*].limit', max: 10}", "rates: [{limit: 11}, {limit: 1}, {limit: 12}]", []string{"spec.rules[0].max: rates[0].limit is 11; rates[2].limit is 12"}},
		"names and items":          {"{path: 'limits.*.rates[*].limit', max: 10}", "limits: {b: {rates: [{limit: 11}]}}", []string{"spec.rules[0].max: limits.b.rates[0].limit is 11"}},
		"items of items":           {"{path: 'a[*][*]', max: 1}", "a: [[1, 2], 3, [{}]]", []string{"spec.rules[0].max incomparable: a[0][1] is 2; a[2][0] is {}"}},
		"items of the spec itself": {"{path: '[*].a', max: 1}", "[{a: 2}]", []string{"spec.rules[0].max: [0].a is 2"}},
		"a quoted name":            {`{path: 'limits["a.b"].max', max: 10}`, "limits: {a.b: {max: 11}}", []string{`spec.rules[0].max: limits["a.b"].max is 11`}},
		"a name that is a star":    {`{path: 'limits["*"].max', max: 10}`, "limits: {'*': {max: 11}, b: {max: 12}}", []string{`spec.rules[0].max: limits["*"].max is 11`}},
		"a name is no item":        {"{path: 'a.*', max: 10}", "a: [11]", nil},
		"an item is no name":       {"{path: 'a[*]', max: 10}", "a: {b: 11}", nil},
		"many are counted":         {"{path: 'a[*]', max: 1}", "a: [2, 3, 4, 5, 6]", []string{"spec.rules[0].max: a[0] is 2; a[1] is 3; a[2] is 4; 2 more"}},

		"one of an enum":            {"{path: a, enum: [x, 1, {b: 2}]}", "a: {b: 2.0}", nil},
		"numbers by their value":    {"{path: a, enum: [1]}", "a: 1.0", nil},
		"none of an enum":           {"{path: a, enum: [x, 1]}", "a: w", []string{`spec.rules[0].enum: a is "w"`}},
		"a text is no number":       {"{path: a, enum: [1]}", "a: '1'", []string{`spec.rules[0].enum: a is "1"`}},
		"an enum of no value":       {"{path: a, enum: [1]}", "{}", nil},
		"a pattern somewhere":       {"{path: a, pattern: 'x+'}", "a: 'axxb'", nil},
		"a pattern that is not met": {"{path: a, pattern: '^x+$'}", "a: axxb", []string{`spec.rules[0].pattern: a is "axxb"`}},
		"a number has no pattern":   {"{path: a, pattern: '1'}", "a: 1", []string{"spec.rules[0].pattern: a is 1"}},

		"required and there":                   {"{path: a.b, required: true}", "a: {b: false}", nil},
		"an empty object is present":           {"{path: a.b, required: true}", "a: {b: {}}", nil},
		"required and missing":                 {"{path: a.b, required: true}", "a: {}", []string{"spec.rules[0].required: a.b"}},
		"required and null":                    {"{path: a, required: true}", "a: null", []string{"spec.rules[0].required: a"}},
		"required, and the parent missing":     {"{path: a.b, required: true}", "{}", []string{"spec.rules[0].required: a.b"}},
		"required, and the parent a string":    {"{path: a.b, required: true}", "a: x", []string{"spec.rules[0].required: a.b"}},
		"at least one of any name":             {"{path: 'rules.authentication.*', required: true}", "rules: {authentication: {x: {}}}", nil},
		"none of any name":                     {"{path: 'rules.authentication.*', required: true}", "rules: {authentication: {}}", []string{"spec.rules[0].required: rules.authentication.*"}},
		"none at all, of any name":             {"{path: 'rules.authentication.*', required: true}", "{}", []string{"spec.rules[0].required: rules.authentication.*"}},
		"at least one item":                    {"{path: 'a[*]', required: true}", "a: []", []string{"spec.rules[0].required: a[*]"}},
		"each of several must have it":         {"{path: 'limits.*.max', required: true}", "limits: {a: {max: 1}, b: {}, c: {}}", []string{"spec.rules[0].required: limits.b.max; limits.c.max"}},
		"each item must have it":               {"{path: 'a[*].b', required: true}", "a: [{b: 1}, {}]", []string{"spec.rules[0].required: a[1].b"}},
		"each must have it, and one is a text": {"{path: 'limits.*.max', required: true}", "limits: {a: {max: 1}, b: x}", []string{"spec.rules[0].required: limits.b.max"}},
		"none of several":                      {"{path: 'limits.*.max', required: true}", "limits: {}", []string{"spec.rules[0].required: limits.*.max"}},
		"the spec itself":                      {"{path: '[*]', required: true}", "[]", []string{"spec.rules[0].required: [*]"}},

		"all demands of a rule": {"{path: 'a[*]', required: true, min: 2, max: 3, enum: [2, 3], pattern: x}", "a: [1, 4]", []string{
			"spec.rules[0].min: a[0] is 1",
			"spec.rules[0].max: a[1] is 4",
			"spec.rules[0].enum: a[0] is 1; a[1] is 4",
			"spec.rules[0].pattern: a[0] is 1; a[1] is 4",
		}},
		"the author's own message": {"{path: a, max: 1, message: \"not\\nmore\"}", "a: 2", []string{"spec.rules[0].max: not more"}},
		"a long value is cut":      {"{path: a, enum: [x]}", "a: '" + strings.Repeat("y", 200) + "'", []string{`spec.rules[0].enum: a is "` + strings.Repeat("y", 127) + "…"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assertUnmet(t, c.want, unmet(t, c.rule, c.spec)) })
	}
}

func TestUnmetBeyond(t *testing.T) {
	got := unmet(t, "{path: 'a[*]', min: 2, max: 3}", "a: [4, x, 10.5, 1, 3]")
	require.Len(t, got, 2)
	assert.Equal(t, "a[*]", got[0].Rule)
	assert.Equal(t, []*big.Rat{nil, big.NewRat(15, 2), big.NewRat(1, 1)}, got[1].Beyond, "above, the worst first")
	assert.Equal(t, []*big.Rat{nil, big.NewRat(1, 1)}, got[0].Beyond, "below")
}

func TestUnmetWorse(t *testing.T) {
	cases := map[string]struct {
		rule, before, after string
		want                bool
	}{
		"the same":                              {"{path: a, max: 1}", "a: 5", "a: 5", false},
		"closer to the bound":                   {"{path: a, max: 1}", "a: 5", "a: 4", false},
		"further from the bound":                {"{path: a, max: 1}", "a: 5", "a: 5.1", true},
		"further by the last digit":             {"{path: a, max: 1}", "a: 9007199254740992", "a: 9007199254740993", true},
		"further below":                         {"{path: a, min: 10}", "a: 5", "a: 4", true},
		"no number any more":                    {"{path: a, max: 1}", "a: 5", "a: x", true},
		"a number where there was none":         {"{path: a, max: 1}", "a: x", "a: 500", false},
		"one more value":                        {"{path: 'a[*]', max: 1}", "a: [5]", "a: [5, 2]", true},
		"one less":                              {"{path: 'a[*]', max: 1}", "a: [5, 2]", "a: [5, 1]", false},
		"the same in another place":             {"{path: 'a[*]', max: 1}", "a: [5]", "a: [1, 5]", false},
		"one closer and one further":            {"{path: 'a[*]', max: 1}", "a: [5, 3]", "a: [4, 4]", true},
		"another value that is not in the enum": {"{path: a, enum: [x]}", "a: w", "a: z", false},
		"two where there was one":               {"{path: 'a[*]', enum: [x]}", "a: [w]", "a: [w, z]", true},
		"still missing":                         {"{path: a, required: true}", "{}", "{b: 1}", false},
		"missing in one more":                   {"{path: 'a.*.b', required: true}", "a: {x: {}}", "a: {x: {}, y: {}}", true},
		"a duration":                            {"{path: a, max: 30s}", "a: 1m", "a: 61s", true},
		"a quantity":                            {"{path: a, max: 1Gi}", "a: 2Gi", "a: 1.9Gi", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := unmet(t, c.rule, c.before), unmet(t, c.rule, c.after)
			require.Len(t, before, 1)
			require.Len(t, after, 1)
			assert.Equal(t, before[0].At, after[0].At)
			assert.Equal(t, c.want, after[0].Worse(before[0]))
		})
	}
}

func TestRuleCostIsCharged(t *testing.T) {
	empty := errors.New("nothing left")
	items := strings.Repeat("1, ", 9_999) + "1"
	p := &meter{limit: 10_000, err: empty}
	_, err := evaluate(valid(t, "rules: [{path: 'a[*]', max: 1}]"), effective(t, "a: ["+items+"]"), p)
	require.ErrorIs(t, err, empty)
	p = &meter{limit: 20_000, err: empty}
	got, err := evaluate(valid(t, "rules: [{path: 'a[*]', max: 1}]"), effective(t, "a: ["+items+"]"), p)
	require.NoError(t, err)
	assert.Empty(t, got, "10,000 values are looked at, one by one")
	assert.Greater(t, p.spent, uint64(10_000))

	p = &meter{}
	_, err = evaluate(valid(t, "rules: [{path: a, pattern: x}]"), effective(t, "a: '"+strings.Repeat("x", 10_000)+"'"), p)
	require.NoError(t, err)
	assert.Greater(t, p.spent, uint64(1_000), "a long text costs")
}
