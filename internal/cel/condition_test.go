package cel

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/tables"
)

type m = map[string]any

// spec returns the spec of most cases.
func spec() m {
	return m{
		"rules": m{"authentication": m{"b": int64(120)}, "empty": m{}},
		"limits": m{
			"a": m{
				"rates": []any{m{"limit": int64(100), "window": "1m"}, m{"limit": int64(10000), "window": "24h"}},
				"max":   int64(100), "half": 50.5, "off": nil, "on": true, "unit": "s",
			},
			"a.b": m{"max": int64(7)},
		},
		"holes": []any{m{}, m{"limit": int64(100)}},
		"names": []any{"a", "b"},
		"big":   float64(1 << 60),
	}
}

func TestEvaluate(t *testing.T) {
	met, not := merge.Answer{Met: true}, merge.Answer{}
	lacks := func(key string) merge.Answer { return merge.Answer{Missing: key, HasSiblings: true} }
	cases := map[string]struct {
		when string
		spec m
		want merge.Answer
	}{
		"E1: 30 is not over 50":               {`spec.rules.authentication.a > 50`, m{"rules": m{"authentication": m{"a": int64(30), "b": int64(120)}}}, not},
		"E2: 100 is over 50":                  {`spec.rules.authentication.a > 50`, m{"rules": m{"authentication": m{"a": int64(100), "b": int64(120)}}}, met},
		"E3: one of the rates is over 50":     {`spec.limits.a.rates.exists(r, r.limit > 50)`, spec(), met},
		"E3: none of the rates is":            {`spec.limits.a.rates.exists(r, r.limit > 10000)`, spec(), not},
		"a float is compared with an int":     {`spec.limits.a.half > 50 && spec.limits.a.half < 51`, spec(), met},
		"an int is compared with a float":     {`spec.limits.a.max > 99.5 && spec.limits.a.max == 100.0`, spec(), met},
		"a whole float equals an int":         {`spec.x == 50`, m{"x": 50.0}, met},
		"a null equals null":                  {`spec.limits.a.off == null`, spec(), met},
		"a value is not null":                 {`spec.limits.a.max != null`, spec(), met},
		"self holds the spec":                 {`self.spec.limits.a.max == 100 && self["spec"].limits.a.on`, spec(), met},
		"self and spec are the same":          {`self.spec == spec`, spec(), met},
		"a bool of the spec is an answer":     {`spec.limits.a.on`, spec(), met},
		"a name with a dot is an index":       {`spec.limits["a.b"].max == 7`, spec(), met},
		"an index can be computed":            {`spec.limits[spec.names[0]].max == 100`, spec(), met},
		"a map equals a literal, left":        {`{"b": 120} == spec.rules.authentication`, spec(), met},
		"a map equals a literal, right":       {`spec.rules.authentication == {"b": 120.0}`, spec(), met},
		"a map with another key does not":     {`{"c": 120} == spec.rules.authentication`, spec(), not},
		"a list equals a literal, left":       {`["a", "b"] == spec.names`, spec(), met},
		"a list equals a literal, right":      {`spec.names == ["a", "b"]`, spec(), met},
		"a list holds a value":                {`"b" in spec.names && !("c" in spec.names)`, spec(), met},
		"a map holds a key":                   {`"a" in spec.limits && !("z" in spec.limits) && !(5 in spec.limits)`, spec(), met},
		"sizes":                               {`size(spec.names) == 2 && spec.limits.size() == 2 && spec.limits.a.unit.size() == 1`, spec(), met},
		"lists are joined":                    {`(spec.names + ["c"]).join("-") == "a-b-c"`, spec(), met},
		"a map is walked by its keys":         {`spec.limits.all(k, spec.limits[k].max > 5)`, spec(), met},
		"a map is walked in pairs":            {`spec.limits.exists(k, l, k == "a.b" && l.max == 7)`, spec(), met},
		"a list is walked in pairs":           {`spec.names.exists(i, n, i == 1 && n == "b")`, spec(), met},
		"a filter of a map":                   {`spec.limits.a.rates.filter(r, r.limit > 500).map(r, r.window) == ["24h"]`, spec(), met},
		"types can be asked":                  {`type(spec.limits) == map && type(spec.names) == list`, spec(), met},
		"the string functions":                {`"A-b".lowerAscii().replace("-", "").split("") == ["a", "b"] && "abc".indexOf("c") == 2`, spec(), met},
		"the set functions":                   {`sets.contains(spec.names, ["a"]) && sets.intersects(spec.names, ["b"]) && sets.equivalent(spec.names, ["b", "a"])`, spec(), met},
		"texts are compared":                  {`spec.limits.a.unit >= "s" && spec.limits.a.unit < "t" && "s" <= spec.limits.a.unit`, spec(), met},
		"values are converted":                {`int("5") == 5 && double(spec.limits.a.max) == 100.0 && string(5) + "s" == "5s" && duration("1m") > duration("5s")`, spec(), met},
		"times are read":                      {`timestamp("2020-01-01T00:00:00Z").getFullYear() == 2020`, spec(), met},
		"the math functions":                  {`math.greatest(spec.limits.a.max, 5) == 100`, spec(), met},
		"a binding":                           {`cel.bind(l, spec.limits.a, l.max == 100)`, spec(), met},
		"a regular expression":                {`spec.limits.a.unit.matches("^s$") && !matches("ss", "^s$")`, spec(), met},
		"has, of what is there":               {`has(spec.limits.a)`, spec(), met},
		"has, of what is not":                 {`has(spec.limits.z)`, spec(), not},
		"has, of a null":                      {`has(spec.limits.a.off)`, spec(), met},
		"has guards what is behind it":        {`has(spec.limits.z) && spec.limits.z.max > 5`, spec(), not},
		"has in a comprehension":              {`spec.holes.exists(h, has(h.limit) && h.limit > 50)`, spec(), met},
		"has of a literal":                    {`has({"a": 1}.a) && !has({"a": 1}.b)`, spec(), met},
		"has of self":                         {`has(self.spec)`, spec(), met},
		"has, below what is not there":        {`has(spec.limits.z.rates)`, spec(), lacks("limits.z")},
		"not has, below what is not there":    {`!has(spec.limits.z.rates)`, spec(), lacks("limits.z")},
		"a key that is not there":             {`spec.limits.a.burst > 5`, spec(), lacks("limits.a.burst")},
		"the first key that is not there":     {`spec.limits.c.burst.x > 5`, spec(), lacks("limits.c")},
		"at the top":                          {`spec.nothing > 5`, spec(), lacks("nothing")},
		"through self":                        {`self.spec.limits.c > 5`, spec(), lacks("limits.c")},
		"with a dot in its name":              {`spec.limits["c.d"].max > 5`, spec(), lacks(`limits["c.d"]`)},
		"below a name with a dot":             {`spec.limits["a.b"].min > 5`, spec(), lacks(`limits["a.b"].min`)},
		"in an element of a list":             {`spec.limits.a.rates[0].burst > 5`, spec(), lacks("limits.a.rates[0].burst")},
		"in a list, with a dot in its name":   {`spec.limits.a.rates[1]["x.y"] > 5`, spec(), lacks(`limits.a.rates[1]["x.y"]`)},
		"by a computed index":                 {`spec.limits[spec.limits.a.unit].max > 5`, spec(), lacks("limits.s")},
		"inside a computed index":             {`spec.limits[spec.limits.z].max > 5`, spec(), lacks("limits.z")},
		"in a map without neighbours":         {`spec.rules.empty.a > 5`, spec(), merge.Answer{Missing: "rules.empty.a"}},
		"in an empty spec":                    {`spec.rules.a > 5`, m{}, merge.Answer{Missing: "rules"}},
		"in a spec that is nil":               {`spec.rules.a > 5`, nil, merge.Answer{Missing: "rules"}},
		"negated":                             {`!(spec.limits.a.burst == 1)`, spec(), lacks("limits.a.burst")},
		"compared for inequality":             {`spec.limits.a.burst != 1`, spec(), lacks("limits.a.burst")},
		"compared with null":                  {`spec.limits.a.burst == null`, spec(), lacks("limits.a.burst")},
		"as a function's argument":            {`size(spec.limits.a.burst) == 1`, spec(), lacks("limits.a.burst")},
		"as an element":                       {`1 in [spec.limits.a.burst]`, spec(), lacks("limits.a.burst")},
		"in a chosen map":                     {`(spec.limits.a.on ? spec.limits.a : spec.limits["a.b"]).burst == 1`, spec(), lacks("limits.a.burst")},
		"in a choice":                         {`spec.limits.a.on ? spec.limits.a.burst == 1 : true`, spec(), lacks("limits.a.burst")},
		"in a binding":                        {`cel.bind(l, spec.limits.a, l.burst == 100)`, spec(), lacks("limits.a.burst")},
		"as a comprehension's range":          {`spec.limits.c.rates.exists(r, r.limit > 50)`, spec(), lacks("limits.c")},
		"as a range, the last key":            {`spec.limits["a.b"].rates.exists(r, r.limit > 50)`, spec(), lacks(`limits["a.b"].rates`)},
		"one side of or is true, the right":   {`spec.limits.a.burst == 1 || spec.limits.a.max > 50`, spec(), met},
		"one side of or is true, the left":    {`spec.limits.a.max > 50 || spec.limits.a.burst == 1`, spec(), met},
		"one side of or is false":             {`spec.limits.a.max > 500 || spec.limits.a.burst == 1`, spec(), lacks("limits.a.burst")},
		"one side of and is false, the right": {`spec.limits.a.burst == 1 && spec.limits.a.max > 500`, spec(), not},
		"one side of and is false, the left":  {`spec.limits.a.max > 500 && spec.limits.a.burst == 1`, spec(), not},
		"one side of and is true":             {`spec.limits.a.max > 50 && spec.limits.a.burst == 1`, spec(), lacks("limits.a.burst")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			condition, err := Compile(c.when)
			require.NoError(t, err)
			got := condition.Evaluate(c.spec)
			require.NoError(t, got.Err)
			assert.Positive(t, got.Cost)
			got.Cost = 0
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.when, condition.String())
		})
	}
}

func TestEvaluateErrors(t *testing.T) {
	cases := tables.Read[map[string]struct{ When, Says string }](t, "testdata/tables/evaluate-errors.yaml")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			condition, err := Compile(c.When)
			require.NoError(t, err)
			got := condition.Evaluate(spec())
			var failed *EvalError
			require.ErrorAs(t, got.Err, &failed)
			require.Error(t, got.Err)
			require.ErrorContains(t, got.Err, c.Says)
			require.NotErrorIs(t, got.Err, ErrBudget)
			assert.Positive(t, got.Cost)
			assert.Equal(t, merge.Answer{Err: got.Err, Cost: got.Cost}, got)
		})
	}
}

func TestCostLimit(t *testing.T) {
	many := make([]any, 5000)
	for i := range many {
		many[i] = int64(i)
	}
	large := m{"many": many, "text": strings.Repeat("a", 1<<20), "pattern": strings.Repeat("(a?){9}", 100)}
	doubled := `[[1]]` + strings.Repeat(`.map(a, [a, a])`, 40)
	cases := map[string]string{
		"a walk over many":             `spec.many.exists(x, x < 0)`,
		"a walk in a walk":             `spec.many.all(x, spec.many.all(y, x <= y || x > y))`,
		"many compared in a walk":      `[1, 2, 3].exists(x, spec.many != spec.many)`,
		"a value compared with itself": doubled + ` == ` + doubled,
		"a text put between letters":   `spec.text.replace("", spec.text) == ""`,
		"a long text searched":         `spec.text.matches("(a*)*b")`,
		"a large pattern":              `spec.text.matches(spec.pattern)`,
		"texts joined by a long one":   `spec.many.map(x, "").join(spec.text) == ""`,
		"joined by a long one":         `["", "", "", ""].join(spec.text) == ""`,
		"a text found in a text":       `spec.text.indexOf(spec.text + "b") > 0`,
		"found from behind":            `spec.text.lastIndexOf(spec.text + "b") > 0`,
		"pairs of sets":                `sets.contains(spec.many, spec.many)`,
		"a value in many":              `[1, 2, 3].all(x, x in spec.many)`,
		"absorbed by or":               `spec.text.matches("(a*)*b") || true`,
		"a long text compared":         `[1, 2, 3].all(x, spec.text < "b")`,
		"a long text equal to":         `[1, 2, 3].all(x, spec.text != spec.text + "b")`,
		"a long text converted":        `[1, 2, 3].all(x, bytes(spec.text) != b"")`,
		"the greatest of many":         `[1, 2, 3].all(x, math.greatest(spec.many) > 0)`,
		"sizes of a long text":         `[1, 2, 3].all(x, size(spec.text) > 0)`,
	}
	for name, when := range cases {
		t.Run(name, func(t *testing.T) {
			condition, err := Compile(when)
			require.NoError(t, err)
			got := condition.Evaluate(large)
			require.ErrorIs(t, got.Err, ErrBudget)
			require.ErrorContains(t, got.Err, "10000 units")
			assert.Equal(t, merge.Answer{Err: got.Err, Cost: got.Cost}, got)
			assert.Greater(t, got.Cost, uint64(Limit))
			assert.Less(t, got.Cost, uint64(15*Limit), "what was refused is not booked in full")
		})
	}
}

func TestCostGrowsWithTheWork(t *testing.T) {
	condition, err := Compile(`spec.list.exists(x, x < 0)`)
	require.NoError(t, err)
	short := condition.Evaluate(m{"list": []any{int64(1)}})
	long := condition.Evaluate(m{"list": []any{int64(1), int64(2), int64(3), int64(4)}})
	require.NoError(t, errors.Join(short.Err, long.Err))
	assert.Less(t, short.Cost, long.Cost)
}

func TestEvaluateDoesNotEditSpec(t *testing.T) {
	s := spec()
	condition, err := Compile(`(spec.names + ["c"]).size() == 3 && spec.limits.a.rates.map(r, r.limit).size() == 2`)
	require.NoError(t, err)
	assert.True(t, condition.Evaluate(s).Met)
	assert.Equal(t, spec(), s)
}

func TestEvaluateConcurrently(t *testing.T) {
	wants := map[string]merge.Answer{
		`spec.limits.a.rates.exists(r, r.limit > 50)`: {Met: true},
		`spec.limits.a.burst > 5`:                     {Missing: "limits.a.burst", HasSiblings: true},
	}
	s := spec()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for when, want := range wants {
				condition, err := Compile(when)
				if !assert.NoError(t, err) {
					return
				}
				for range 100 {
					got := condition.Evaluate(s)
					got.Cost = 0
					assert.Equal(t, want, got)
				}
			}
			wrong, err := Compile(`spec.limits.a.max.join(",") == "" || !spec.limits.a.max`)
			if assert.NoError(t, err) {
				assert.Error(t, wrong.Evaluate(s).Err)
			}
		})
	}
	group.Wait()
}
