package schema

import (
	"regexp"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// fieldRefs are the fields of a node that a validation of it refers to, and whether
// it depends on more than their presence. Nil if they are not known.
type fieldRefs map[string]bool

func (f fieldRefs) add(name string, deep bool) { f[name] = f[name] || deep }

// with adds the references of another validation.
func (f fieldRefs) with(o fieldRefs) fieldRefs {
	if f == nil || o == nil {
		return nil
	}
	for name, deep := range o {
		f.add(name, deep)
	}
	return f
}

// involvesSeveral reports whether a validation of a node, with the fields that it
// refers to, may involve more than one rule. One that refers to no content does not,
// nor one that refers to a single rule or to the presence of a single field: it
// holds for the merged spec if it holds for each policy.
func (red *reducer) involvesSeveral(m fieldRefs, s *structuralschema.Structural, at []string) bool {
	if m == nil {
		return true
	}
	content, deep := 0, false
	for name, isDeep := range m {
		switch red.contentOf(s, at, name) {
		case noContent:
		case oneRule:
			content++
		case severalRules:
			content++
			deep = deep || isDeep
		}
	}
	return content > 1 || deep
}

// validationRefs returns the fields that nested validations of a node refer to.
func validationRefs(all []structuralschema.NestedValueValidation) fieldRefs {
	out := fieldRefs{}
	for i := range all {
		if !out.addNested(&all[i]) {
			return nil
		}
	}
	return out
}

// addNested adds the fields of a validation; ok is false if it depends on more than
// fields.
func (f fieldRefs) addNested(v *structuralschema.NestedValueValidation) (ok bool) {
	if v.Items != nil || v.AdditionalProperties != nil || v.MinProperties != nil || v.MaxProperties != nil ||
		v.MinItems != nil || v.MaxItems != nil || v.UniqueItems || len(v.Enum) > 0 {
		return false
	}
	for _, name := range v.Required {
		f.add(name, false)
	}
	for name := range v.Properties {
		f.add(name, true)
	}
	nested := append(append(append([]structuralschema.NestedValueValidation{}, v.AllOf...), v.AnyOf...), v.OneOf...)
	if v.Not != nil {
		nested = append(nested, *v.Not)
	}
	for i := range nested {
		if !f.addNested(&nested[i]) {
			return false
		}
	}
	return true
}

var (
	// stringLiteral matches the string literals of CEL.
	stringLiteral = regexp.MustCompile(`(?s)[rRbB]*("""(\\.|[^\\])*?"""|'''(\\.|[^\\])*?'''|"(\\.|[^"\\])*"|'(\\.|[^'\\])*')`)
	// selfRef matches a use of self: has( before it, the field, and ( or ) behind it.
	selfRef = regexp.MustCompile(`(\bhas\s*\(\s*)?\bself\b(\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)(\s*[()])?)?`)
)

// celRefs returns the fields that a CEL rule refers to, nil if its text does not
// show them.
func celRefs(rule string) fieldRefs {
	out := fieldRefs{}
	for _, use := range selfRef.FindAllStringSubmatch(stringLiteral.ReplaceAllString(rule, `""`), -1) {
		has, name, end := use[1] != "", use[3], strings.TrimSpace(use[4])
		if name == "" || end == "(" || strings.Contains(name, "__") {
			return nil // all of self, a function of it, or an escaped name
		}
		out.add(name, !has || end != ")")
	}
	return out
}
