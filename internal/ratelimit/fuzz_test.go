package ratelimit

import (
	"regexp"
	"regexp/syntax"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/decode"
)

// No JSON brings the reader down; what it takes has rates of positive seconds,
// selectors that are well known and triggers that state something.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"rates":[{"limit":5,"unit":"second"}]}`,
		`{"rates":[{"limit":1e3,"duration":2.0,"unit":"day"}],"counters":["auth.identity.username"]}`,
		`{"rates":[{"limit":9223372036854775808,"unit":"day","duration":106751991167301}]}`,
		`{"rates":[{"limit":1,"unit":"hour"}],"when":[{"selector":"auth.a","operator":"matches","value":"(a+)+"}]}`,
		`{"rates":[{"limit":1,"unit":"hour"}],"triggers":[{"matches":[{"path":{"type":"Exact","value":"/a"},"method":"GET",` +
			`"headers":[{"name":"a","value":"b"}],"queryParams":[{"name":"a","value":"b"}]}],"hostnames":["*.a"]}]}`,
		`{"triggers":[{}],"trigers":[]}`, `[{"rates":null}]`, `null`, `{"rates":[null],"counters":[[]],"when":[{}],"triggers":[null]}`,
	} {
		f.Add("a", []byte(text))
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		value, err := decode.Value(text)
		if err != nil {
			return // no JSON
		}
		Speaks(value)
		limit, errs := Read(field.NewPath("spec").Key(name), name, value)
		if (limit == nil) == (len(errs) == 0) {
			t.Fatalf("a limit and errors, or neither: %v", errs)
		}
		for _, err := range errs {
			if err.Error() == "" {
				t.Fatal("an error that says nothing")
			}
		}
		if limit != nil {
			sound(t, limit)
		}
	})
}

func sound(t *testing.T, limit *Limit) {
	if len(limit.Rates) == 0 {
		t.Fatal("no rates")
	}
	for _, rate := range limit.Rates {
		if rate.Limit < 1 || rate.Duration < 1 || rate.Seconds() < rate.Duration {
			t.Fatalf("rate %+v of %d seconds", rate, rate.Seconds())
		}
	}
	for _, selector := range limit.Counters {
		if err := CheckCounter(selector); err != nil {
			t.Fatal(err)
		}
	}
	for _, condition := range limit.When {
		if condition.Operator == "" || CheckCondition(condition.Selector) != nil {
			t.Fatalf("condition %+v", condition)
		}
	}
	for _, trigger := range limit.Triggers {
		if len(trigger.Matches)+len(trigger.Hostnames) == 0 {
			t.Fatal("a trigger that states nothing")
		}
	}
}

// Spelled out, an expression matches what it did; and no expression brings down
// the search for ambiguity, or outlasts its steps by much.
func FuzzRegexp(f *testing.F) {
	for _, pattern := range []string{
		`(a+)+`, `(?:a|(?i)b)*c`, `[^]\]]|[[:alpha:]|]`, `\Q(|\E|\Qa`, `(?P<n>a{2,3}?)|(?-s:.)`, `(a?){30}`, `\pL\x{41}`, `(?m)^a$|\b`,
	} {
		f.Add(pattern, "aAb")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		steps := mostSteps
		if err := checkRegexp(pattern, &steps); err != nil && err.Error() == "" {
			t.Fatal("an error that says nothing")
		}
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil || len(pattern) > 200 || size(parsed) > largestPattern {
			return // refused, or too large to try
		}
		spelled, err := regexp.Compile(spellOut(pattern))
		if err != nil {
			t.Fatalf("%q, spelled out, does not compile: %v", pattern, err)
		}
		if was, is := regexp.MustCompile(pattern).FindStringIndex(text), spelled.FindStringIndex(text); !same(was, is) {
			t.Fatalf("%q matched %v of %q, spelled out %v", pattern, was, text, is)
		}
	})
}

func same(a, b []int) bool {
	return (a == nil) == (b == nil) && (a == nil || a[0] == b[0] && a[1] == b[1])
}
