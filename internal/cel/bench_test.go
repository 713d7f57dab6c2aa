package cel

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"
)

var benchmarks = map[string]string{
	"simple":  `spec.limits.a.max > 50`,
	"exists":  `spec.limits.a.rates.exists(r, r.limit > 500)`,
	"missing": `spec.limits.a.burst > 50`,
}

// BenchmarkEvaluate compares a condition with a plain cel-go program, with and without a
// cost limit, of the same expression.
func BenchmarkEvaluate(b *testing.B) {
	for _, name := range []string{"simple", "exists", "missing"} {
		s := spec()
		condition, err := Compile(benchmarks[name])
		require.NoError(b, err)
		b.Run(name+"/condition", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				condition.Evaluate(s)
			}
		})
		for kind, options := range map[string][]cel.ProgramOption{"limited": {cel.CostLimit(Limit)}, "bare": nil} {
			program := bare(b, benchmarks[name], options...)
			b.Run(name+"/cel-go-"+kind, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _, _ = program.Eval(map[string]any{"spec": s})
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	env, err := newEnvironment(conditions)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, err = env.compile(benchmarks["exists"])
	}
	require.NoError(b, err)
}

func bare(b *testing.B, expression string, options ...cel.ProgramOption) cel.Program {
	b.Helper()
	env, err := cel.NewEnv(cel.Variable("spec", cel.DynType))
	require.NoError(b, err)
	checked, issues := env.Compile(expression)
	require.NoError(b, issues.Err())
	program, err := env.Program(checked, options...)
	require.NoError(b, err)
	return program
}
