package cel

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// hasFunction is the function to which has() expands.
const hasFunction = "@has"

// dialect is the properties of the expressions of one use.
type dialect struct {
	// noun is the name of such an expression in errors.
	noun string
	// of is the type to which it evaluates.
	of        *types.Type
	variables []string
	// self is set if there is a variable self with the field spec.
	self bool
}

// conditions are the expressions of blocks (`when`).
var conditions = dialect{noun: "condition", of: types.BoolType, variables: []string{"spec", "self"}, self: true}

// environment is the CEL environment of a dialect.
type environment struct {
	*cel.Env
	dialect
	options []cel.ProgramOption
}

// base is the environment that all dialects extend: libraries and limits, no variables.
var base = sync.OnceValues(func() (*cel.Env, error) {
	// cel-go labels an error with the first node that returns it, this shared
	// one too: label it before there are several goroutines
	types.LabelErrNode(-1, types.NoSuchOverloadErr())
	return cel.NewEnv(
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		ext.Strings(), ext.Sets(), ext.Math(), ext.Bindings(), ext.TwoVarComprehensions(),
		cel.ParserRecursionLimit(maxNesting),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	)
})

func newEnvironment(d dialect) (*environment, error) {
	shared, err := base()
	if err != nil {
		return nil, fmt.Errorf("set up the CEL environment: %w", err)
	}
	options := []cel.EnvOption{
		cel.Macros(cel.GlobalMacro("has", 1, d.expandHas)),
		cel.Function(hasFunction, cel.Overload("has_dyn_string",
			[]*cel.Type{cel.DynType, cel.StringType}, cel.BoolType, cel.BinaryBinding(has))),
		cel.ASTValidators(staticValidator{d}),
	}
	for _, name := range d.variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	env, err := shared.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("set up the CEL environment: %w", err)
	}
	costs, err := newCostEstimator(env)
	if err != nil {
		return nil, fmt.Errorf("set up the CEL cost limit: %w", err)
	}
	return &environment{Env: env, dialect: d, options: []cel.ProgramOption{
		cel.CustomDecoratorV2(costs.decorate), cel.CostTracking(costs), cel.CostLimit(Limit),
	}}, nil
}

// expandHas expands has(x.f) to a function call: cel-go's own presence test selects the
// key, and our maps return an error for the selection of a missing key.
func (d dialect) expandHas(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	if args[0].Kind() != ast.SelectKind {
		return nil, f.NewError(args[0].ID(), "has() requires a field, as in has("+d.variables[0]+".limits.a)")
	}
	field := args[0].AsSelect()
	return f.NewCall(hasFunction, field.Operand(), f.NewLiteral(types.String(field.FieldName()))), nil
}

func has(value, name ref.Val) ref.Val {
	m, ok := value.(traits.Mapper)
	if !ok {
		return types.NewErr("has() requires a map to look up %q, not %s", name.Value(), value.Type().TypeName())
	}
	return m.Contains(name)
}

// staticValidator reports at compile time what would fail on every spec, or what the
// cost limit cannot bound.
type staticValidator struct{ dialect }

// Name implements cel.ASTValidator.
func (staticValidator) Name() string { return "overrule" }

// Validate implements cel.ASTValidator.
func (v staticValidator) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	var patterns []string
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			switch e.AsCall().FunctionName() {
			case "format":
				issues.ReportErrorAtID(e.ID(), "format is not available in %ss", v.noun)
			case "matches":
				patterns = v.literalPattern(patterns, e.AsCall(), issues)
			}
		case ast.SelectKind:
			s := e.AsSelect()
			if v.self && s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == "self" && s.FieldName() != "spec" {
				issues.ReportErrorAtID(e.ID(), "self has no field %q, only spec", s.FieldName())
			}
		default:
		}
	}))
}

// literalPattern compiles a literal pattern. cel-go's own validator would compile any
// pattern, however long that takes.
func (staticValidator) literalPattern(before []string, call ast.CallExpr, issues *cel.Issues) []string {
	last := call.Args()[len(call.Args())-1]
	if last.Kind() != ast.LiteralKind {
		return before
	}
	text, ok := last.AsLiteral().(types.String)
	if !ok {
		return before
	}
	all := append(before, string(text))
	if err := slowPatterns(all); err != nil {
		issues.ReportErrorAtID(last.ID(), "%v", err)
	} else if err := compilePattern(string(text)).err; err != nil {
		issues.ReportErrorAtID(last.ID(), "invalid matches argument: %v", err)
	}
	return all
}

// loopNodes returns the ids of the nodes that are evaluated once per element: the
// bodies of comprehensions, not their ranges.
func loopNodes(a *ast.AST) map[int64]bool {
	in := map[int64]bool{}
	body := ast.NewExprVisitor(func(e ast.Expr) { in[e.ID()] = true })
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			ast.PreOrderVisit(e.AsComprehension().LoopCondition(), body)
			ast.PreOrderVisit(e.AsComprehension().LoopStep(), body)
		}
	}))
	return in
}
