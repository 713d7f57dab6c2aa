package cel

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CheckTypes checks the expression against the schema of effective and before: it
// returns an error for fields that do not exist, and for operations that the types do
// not support. Values without a schema are not checked. The error is a *CompileError.
//
// Evaluation does not use the schema: a string of format duration is a string here, as
// it is in JSON.
func (e *Expression) CheckTypes(effective *apiextensionsv1.JSONSchemaProps) error {
	return e.checkTypes(e.text, effective)
}

func (d dialect) checkTypes(expression string, effective *apiextensionsv1.JSONSchemaProps) error {
	shared, err := base()
	if err != nil {
		return err
	}
	schemas := map[string]*apiextensionsv1.JSONSchemaProps{
		"effective": effective, "before": effective, "origins": &originsSchema, "path": &pathSchema, "request": &requestSchema,
	}
	p := &provider{Provider: shared.CELTypeProvider(), objects: make(map[string]*apiextensionsv1.JSONSchemaProps)}
	options := []cel.EnvOption{cel.CustomTypeProvider(p)}
	for _, name := range d.variables {
		options = append(options, cel.Variable(name, p.typeOf(schemas[name], name)))
	}
	env, err := shared.Extend(options...)
	if err != nil {
		return fmt.Errorf("set up the CEL types of %s: %w", d.noun, err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return d.fromIssues(expression, issues)
	}
	_, issues = env.Check(parsed)
	out := d.compileError(expression, p.definite(parsed, issues.Errors()))
	if len(out.Problems) == 0 {
		return nil
	}
	return out
}

// provider converts schemas to CEL types. It is used for one check.
type provider struct {
	types.Provider
	objects map[string]*apiextensionsv1.JSONSchemaProps
}

// objectMark is the prefix of the names of object types. No identifier of an expression
// can equal such a name, because of the parenthesis.
const objectMark = "object("

// typeOf returns the type of values with a schema at a field path.
func (p *provider) typeOf(s *apiextensionsv1.JSONSchemaProps, at string) *types.Type {
	if s == nil || s.XIntOrString || s.XEmbeddedResource || s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		return types.DynType
	}
	switch s.Type {
	case "object":
		return p.object(s, at)
	case "array":
		if s.Items != nil && s.Items.Schema != nil {
			return types.NewListType(p.typeOf(s.Items.Schema, at+"[*]"))
		}
		return types.NewListType(types.DynType)
	case "string":
		return types.StringType
	case "boolean":
		return types.BoolType
	case "integer":
		return types.IntType
	case "number":
		return types.DoubleType
	default:
		return types.DynType
	}
}

func (p *provider) object(s *apiextensionsv1.JSONSchemaProps, at string) *types.Type {
	if others := s.AdditionalProperties; others != nil {
		if others.Schema == nil {
			return types.DynType
		}
		return types.NewMapType(types.StringType, p.typeOf(others.Schema, at+".*"))
	}
	name := objectMark + at + ")"
	p.objects[name] = s
	return types.NewObjectType(name)
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if p.objects[name] == nil {
		return p.Provider.FindStructType(name)
	}
	return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s := p.objects[name]
	if s == nil {
		return p.Provider.FindStructFieldType(name, field)
	}
	of, ok := s.Properties[field]
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: p.typeOf(&of, strings.TrimSuffix(strings.TrimPrefix(name, objectMark), ")")+"."+field)}, true
}

// definite returns the errors that apply to JSON values, too. CEL's types are stricter
// than the maps and numbers of JSON: an object has keys, and 1 equals 1.0. Errors that
// only result from that are ignored.
func (p *provider) definite(parsed *cel.Ast, found []*common.Error) []*common.Error {
	at := make(map[int64]ast.Expr)
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) { at[e.ID()] = e }))
	var out []*common.Error
	for _, e := range found {
		switch node := at[e.ExprID]; {
		case node == nil:
			out = append(out, e)
		case !allowedInJSON(node, e.Message):
			out = append(out, withOperand(parsed, node, e))
		default:
			if unknown := p.unknownKey(node, e.Message); unknown != "" {
				out = append(out, &common.Error{Location: e.Location, ExprID: e.ExprID, Message: unknown})
			}
		}
	}
	return out
}

// The texts by which cel-go reports two number types, and an object type.
var (
	mixedNumbers = regexp.MustCompile(`'\((int|uint|double), (list\()?(int|uint|double)\)+'`)
	objectName   = regexp.MustCompile(`object\([^()]*\)`)
)

// allowedInJSON reports whether an operation that cel-go's checker rejects works on
// JSON. cel-go has no error types; TestCheckTypesAllowsJSON pins the texts.
func allowedInJSON(node ast.Expr, message string) bool {
	object := objectName.MatchString(message)
	if strings.HasSuffix(message, "cannot be range of a comprehension (must be list, map, or dynamic)") {
		return object
	}
	if node.Kind() != ast.CallKind {
		return false
	}
	call := node.AsCall()
	switch call.FunctionName() {
	case operators.Index, "size":
		return object
	case operators.Conditional: // its branches may be of two types
		return strings.Contains(message, "'(bool, ") || strings.Contains(message, "'(dyn, ")
	case operators.In:
		return object || mixedNumbers.MatchString(message)
	case operators.Equals, operators.NotEquals:
		literal := func(a ast.Expr) bool { return a.Kind() == ast.LiteralKind }
		null := func(a ast.Expr) bool { return literal(a) && a.AsLiteral() == types.NullValue }
		return slices.ContainsFunc(call.Args(), null) || object && !slices.ContainsFunc(call.Args(), literal) ||
			mixedNumbers.MatchString(message)
	default:
		return false
	}
}

// unknownKey returns the error for a literal key that the schema of an object does not
// have, empty if there is none.
func (p *provider) unknownKey(node ast.Expr, message string) string {
	s := p.objects[objectName.FindString(message)]
	if s == nil || node.Kind() != ast.CallKind {
		return ""
	}
	for _, a := range node.AsCall().Args() {
		if a.Kind() != ast.LiteralKind {
			continue
		}
		if key, ok := a.AsLiteral().(types.String); ok {
			if _, has := s.Properties[string(key)]; !has {
				return fmt.Sprintf("undefined field '%s'", key)
			}
		}
	}
	return ""
}

// withOperand adds the operand to the error for an undefined field.
func withOperand(parsed *cel.Ast, node ast.Expr, e *common.Error) *common.Error {
	if node.Kind() != ast.SelectKind || !strings.HasPrefix(e.Message, "undefined field") {
		return e
	}
	of, err := cel.ExprToString(node.AsSelect().Operand(), parsed.NativeRep().SourceInfo())
	if err != nil {
		return e
	}
	return &common.Error{Location: e.Location, ExprID: e.ExprID, Message: e.Message + " of " + of}
}
