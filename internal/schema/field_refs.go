package schema

import (
	"regexp"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// mentions are the fields of a node that a rule about it names, and whether it
// looks at more than their presence. Nil if they are not known.
type fieldRefs map[string]bool

func (m fieldRefs) add(name string, deep bool) { m[name] = m[name] || deep }

// with adds the mentions of another rule.
func (m fieldRefs) with(o fieldRefs) fieldRefs {
	if m == nil || o == nil {
		return nil
	}
	for name, deep := range o {
		m.add(name, deep)
	}
	return m
}

// concerns reports whether a rule about a node may see several rules at once.
// One that names no content does not, nor one that names a single rule, nor one
// that asks whether a single field is there: of each of these some policy says
// by itself what the merged spec says.
func (j *reducer) involvesSeveral(m fieldRefs, s *structuralschema.Structural, at []string) bool {
	if m == nil {
		return true
	}
	content, deep := 0, false
	for name, isDeep := range m {
		switch j.contentOf(s, at, name) {
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

// mentionsOf returns what nested validations of a node name.
func validationRefs(all []structuralschema.NestedValueValidation) fieldRefs {
	out := fieldRefs{}
	for i := range all {
		if !out.addNested(&all[i]) {
			return nil
		}
	}
	return out
}

// nested adds what one names; false if it asks for more than names of fields.
func (m fieldRefs) addNested(v *structuralschema.NestedValueValidation) bool {
	if v.Items != nil || v.AdditionalProperties != nil || v.MinProperties != nil || v.MaxProperties != nil ||
		v.MinItems != nil || v.MaxItems != nil || v.UniqueItems || len(v.Enum) > 0 {
		return false
	}
	for _, name := range v.Required {
		m.add(name, false)
	}
	for name := range v.Properties {
		m.add(name, true)
	}
	below := append(append(append([]structuralschema.NestedValueValidation{}, v.AllOf...), v.AnyOf...), v.OneOf...)
	if v.Not != nil {
		below = append(below, *v.Not)
	}
	for i := range below {
		if !m.addNested(&below[i]) {
			return false
		}
	}
	return true
}

var (
	// quoted are the strings of CEL, which may hold anything.
	stringLiteral = regexp.MustCompile(`(?s)[rRbB]*("""(\\.|[^\\])*?"""|'''(\\.|[^\\])*?'''|"(\\.|[^"\\])*"|'(\\.|[^'\\])*')`)
	// selfs are the uses of self, with the field and what is around it.
	selfRef = regexp.MustCompile(`(\bhas\s*\(\s*)?\bself\b(\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)(\s*[()])?)?`)
)

// mentionedBy returns which fields a rule in CEL names: nil if that cannot be
// told by its text.
func celRefs(rule string) fieldRefs {
	out := fieldRefs{}
	for _, use := range selfRef.FindAllStringSubmatch(stringLiteral.ReplaceAllString(rule, `""`), -1) {
		has, name, end := use[1] != "", use[3], strings.TrimSpace(use[4])
		if name == "" || end == "(" || strings.Contains(name, "__") {
			return nil // all of self, a function of it, or a name that CEL spells in another way
		}
		out.add(name, !has || end != ")")
	}
	return out
}
