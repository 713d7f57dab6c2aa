package constraint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/constraint"
)

func TestValidations(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("1, ", 10_000), ", ")
	cases := map[string]struct {
		validations, spec string
		want              []string
	}{
		"it is true":             {"{expression: effective.a == 1, message: m}", "a: 1", nil},
		"it is not":              {"{expression: effective.a == 1, message: a must be one}", "a: 2", []string{"spec.validations[0]: a must be one"}},
		"it is not, by default":  {"{expression: effective.a == 1}", "a: 2", []string{"spec.validations[0]: effective.a == 1"}},
		"a message expression":   {"{expression: effective.a == 1, message: m, messageExpression: '\"a is \" + string(effective.a)'}", "a: 2", []string{"spec.validations[0]: a is 2"}},
		"a message that fails":   {"{expression: effective.a == 1, message: m, messageExpression: effective.b}", "a: 2", []string{"spec.validations[0]: m"}},
		"an empty message":       {"{expression: effective.a == 1, message: m, messageExpression: '\" \"'}", "a: 2", []string{"spec.validations[0]: m"}},
		"a message of two lines": {"{expression: effective.a == 1, messageExpression: '\"a\\n\\u001bb\"'}", "a: 2", []string{"spec.validations[0]: a b"}},
		"a message that is long": {"{expression: effective.a == 1, messageExpression: effective.long}", "a: 2\nlong: '" + strings.Repeat("é", 2000) + "'", []string{"spec.validations[0]: " + strings.Repeat("é", 1024) + "…"}},
		"two of three":           {"{expression: effective.a == 1}, {expression: effective.a == 2}, {expression: effective.a == 3}", "a: 2", []string{"spec.validations[0]: effective.a == 1", "spec.validations[2]: effective.a == 3"}},

		"a missing key":              {"{expression: effective.limits.a.max < 5, message: m}", "limits: {a: {}}", []string{"spec.validations[0]: m; effective.limits.a.max"}},
		"a missing key, by default":  {"{expression: effective.a < 5}", "{}", []string{"spec.validations[0]: effective.a < 5 is not true; effective.a"}},
		"a value of the wrong type":  {"{expression: effective.a < 5, message: m}", "a: few", []string{"spec.validations[0]: m; no such overload"}},
		"a division by zero":         {"{expression: 1 / effective.a == 1, message: m}", "a: 0", []string{"spec.validations[0]: m; division by zero"}},
		"a loop over 10,000 entries": {"{expression: 'effective.a.all(x, x == 1)', message: m}", "a: [" + many + "]", []string{"spec.validations[0]: m; 10000 units"}},
		"no bool":                    {"{expression: effective.a, message: m}", "a: 1", []string{"spec.validations[0]: m; bool, not int"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &meter{}
			got, err := evaluate(valid(t, "validations: ["+c.validations+"]"), effective(t, c.spec), p)
			require.NoError(t, err)
			assertUnmet(t, c.want, got)
			assert.Positive(t, p.spent)
			for _, u := range got {
				assert.Empty(t, u.Rule)
				assert.False(t, u.Worse(u))
			}
		})
	}
}

func TestValidationsComeBeforeRules(t *testing.T) {
	c := valid(t, "rules: [{path: a, required: true}]\nvalidations: [{expression: 'false', message: m}]")
	got, err := evaluate(c, effective(t, "{}"), &meter{})
	require.NoError(t, err)
	assertUnmet(t, []string{"spec.validations[0]: m", "spec.rules[0].required: a"}, got)
}

func TestEvaluateStopsAtMeterError(t *testing.T) {
	empty := errors.New("nothing left")
	for name, spec := range map[string]string{
		"by a validation": "validations: [{expression: effective.a == 1}]",
		"by a message":    "validations: [{expression: 'false', messageExpression: effective.a}]",
		"by a rule":       "rules: [{path: a, max: 1}]",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(valid(t, spec), effective(t, "a: 2"), &meter{err: empty})
			assert.ErrorIs(t, err, empty)
		})
	}
}

func TestUnusedVariablesAreNotComputed(t *testing.T) {
	on := &cel.Variables{
		Effective: func() any { return m{"a": int64(1)} },
		Path:      func() any { t.Error("path is not used"); return nil },
		Origins:   func() any { t.Error("origins are not used"); return nil },
	}
	got, err := evaluate(valid(t, "validations: [{expression: effective.a == 1}]\nrules: [{path: a, required: true}]"), on, &meter{})
	require.NoError(t, err)
	assert.Empty(t, got)
}

func TestConstraintIsSafeForConcurrentUse(t *testing.T) {
	c := valid(t, "validations: [{expression: effective.a == 1}]\nrules: [{path: 'a', max: 1, pattern: x}]")
	done := make(chan []constraint.Unmet)
	for range 8 {
		go func() {
			var last []constraint.Unmet
			for range 50 {
				last, _ = evaluate(c, &cel.Variables{Effective: func() any { return m{"a": int64(2)} }}, &meter{})
			}
			done <- last
		}()
	}
	first := <-done
	assertUnmet(t, []string{
		"spec.validations[0]: effective.a == 1", "spec.rules[0].max: a is 2", "spec.rules[0].pattern: a is 2",
	}, first)
	for range 7 {
		assert.Equal(t, first, <-done)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	for name, spec := range map[string]string{
		"validation": "validations: [{expression: 'effective.limits.all(k, l, l.max <= 1000)'}]",
		"rule":       "rules: [{path: 'limits.*.max', max: 1000}]",
	} {
		b.Run(name, func(b *testing.B) {
			c := valid(b, spec)
			limits := m{}
			for i := range 5 {
				limits[fmt.Sprint(i)] = m{"max": int64(i)}
			}
			on := &cel.Variables{Effective: func() any { return m{"limits": limits} }}
			b.ReportAllocs()
			for b.Loop() {
				if got, err := evaluate(c, on, &meter{}); err != nil || len(got) > 0 {
					b.Fatal(got, err)
				}
			}
		})
	}
}

func TestPathOf(t *testing.T) {
	toBackend, toSet, mesh := gatewayPath(), bySet(), inMesh(80)
	labels := func(pairs ...any) m {
		out := m{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	gw := m{"namespace": "infra", "name": "edge", "className": "istio", "labels": labels("public", "yes"), "namespaceLabels": m{}}
	route := m{
		"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "app", "name": "r", "hostnames": []any{"a.example.com"},
		"labels": labels("team", "a"), "namespaceLabels": labels("team", "a"),
	}
	assert.Equal(t, m{
		"gatewayClass": m{"name": "istio"}, "gateway": gw,
		"listener": m{"name": "http", "port": int64(80), "protocol": "HTTP", "hostname": "*.example.com"},
		"route":    route, "rule": m{"name": "rule-1", "index": int64(0)},
		"backend": m{"group": "", "kind": "Service", "namespace": "app", "name": "cart", "port": int64(80)},
	}, constraint.PathOf(&toBackend, world{}))
	assert.Equal(t, m{
		"gatewayClass": m{"name": "istio"}, "gateway": gw,
		"listenerSet": m{"namespace": "sets", "name": "s", "labels": labels("own", "yes"), "namespaceLabels": m{}},
		"listener":    m{"name": "tls", "port": int64(443), "protocol": "TLS", "hostname": ""},
		"route":       route, "rule": m{"name": "rule-1", "index": int64(0)},
	}, constraint.PathOf(&toSet, world{}))
	mesh.Member = "filters[1]"
	assert.Equal(t, m{
		"service": m{"namespace": "app", "name": "cart", "port": int64(80), "labels": labels("stage", "live"), "namespaceLabels": labels("team", "a")},
		"client":  "shop", "route": route, "rule": m{"name": "named", "index": int64(1), "member": "filters[1]"},
		"backend": m{"group": "example.com", "kind": "Bucket", "namespace": "store", "name": "b"},
	}, constraint.PathOf(&mesh, world{}))
}

func TestReads(t *testing.T) {
	c := valid(t, "validations: [{expression: 'has(path.route)', messageExpression: request.operation}]\nrules: [{path: a, max: 1}]")
	for name, want := range map[string]bool{"effective": true, "path": true, "request": true, "origins": false, "before": false} {
		assert.Equal(t, want, c.Reads(name), name)
	}
	assert.False(t, valid(t, "validations: [{expression: 'has(path.route)'}]").Reads("effective"))
}

// A validation that could not be evaluated and is false now is worse: otherwise one that
// does not test the presence of a key would have no effect.
func TestEvaluatedFailureIsWorse(t *testing.T) {
	const limit, none, text, ten = "validations: [{expression: effective.a < 5}]", "{}", "a: few", "a: 10"
	cases := map[string]struct {
		before, after string
		want          bool
	}{
		"no key, and still none":          {none, "b: 1", false},
		"no key, and then false":          {none, ten, true},
		"no key, and then the wrong type": {none, text, true},
		"the wrong type, and then false":  {text, ten, true},
		"the wrong type, and still":       {text, "a: [few]", false},
		"false, and then the wrong type":  {ten, text, false},
		"false, and then no key":          {ten, none, false},
		"false, and still":                {ten, "a: 11", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			of := func(spec string) constraint.Unmet {
				got, err := evaluate(valid(t, limit), effective(t, spec), &meter{})
				require.NoError(t, err)
				require.Len(t, got, 1)
				return got[0]
			}
			assert.Equal(t, c.want, of(c.after).Worse(of(c.before)))
		})
	}
}
