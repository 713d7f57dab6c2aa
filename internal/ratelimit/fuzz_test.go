package ratelimit

import (
	"regexp/syntax"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/decode"
)

// No JSON makes Validate panic. A valid limit has rates of positive durations, valid
// selectors, and triggers with matches or hostnames.
func FuzzValidate(f *testing.F) {
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
			return // not JSON
		}
		IsRateLimit(value)
		limit, errs := read(field.NewPath("spec").Key(name), name, value)
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

// An expression that is accepted compiles, to a program no larger than its size says.
func FuzzRegexp(f *testing.F) {
	for _, pattern := range []string{
		`(a+)+`, `(?:a|(?i)b)*c`, `[^]\]]|[[:alpha:]|]`, `\Q(|\E|\Qa`, `(?P<n>a{2,3}?)|(?-s:.)`, `((a?){30}){0,9}`, `\pL\x{41}`,
		`(?m)^a$|\b`, `(a*){7,}|(b{0}){9}|`, `((?:)|[^\x00-\x{10FFFF}])+`, `(`, `a{1000}b{1000}`, strings.Repeat("a", 1025),
	} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if err := checkRegexp(field.NewPath("value"), pattern); err != nil {
			if err.Detail == "" && err.Type != field.ErrorTypeTooLong {
				t.Fatal("an error that says nothing")
			}
			return
		}
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatalf("%q does not parse: %v", pattern, err)
		}
		bound := 2*size(parsed) + 1
		prog, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatalf("%q does not compile: %v", pattern, err)
		}
		if len(prog.Inst) > bound {
			t.Fatalf("%q has %d instructions, and size allows %d", pattern, len(prog.Inst), bound)
		}
	})
}
