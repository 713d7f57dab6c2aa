package schema

import (
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"overrule.dev/overrule/internal/policykind"
)

// joiner finds what of a schema sees several rules at once. The nodes above
// rules do, and nothing within a rule: that was checked when its policy was
// written. Above the place of the rules, only what looks into it does.
type reducer struct {
	layout       policykind.Layout
	location     []string // from the top
	excluded     [][]string
	showValues   bool          // rules in CEL keep their messageExpression
	requirements []requirement // what was found
}

// standing is where a node stands.
type position int

const (
	outside   position = iota // within a rule, or beside them
	above                     // on the way to the place of the rules
	combining                 // in the place, with rules below
)

// of returns the standing of the node at an address from the top, where * is
// any name or item.
func (j *reducer) positionOf(at []string, node *structuralschema.Structural) position {
	n := len(j.location)
	switch {
	case len(at) < n && slices.Equal(at, j.location[:len(at)]):
		return above
	case len(at) < n || !slices.Equal(at[:n], j.location) || j.isExcluded(at):
		return outside
	case len(at) == n || j.layout.Leaves && j.isSplit(at[n:], node):
		return combining
	case !j.layout.Leaves && slices.ContainsFunc(j.layout.Rules, func(a []string) bool { return isAbove(a, at[n:]) }):
		return combining
	default:
		return outside
	}
}

func (j *reducer) isExcluded(at []string) bool {
	return slices.ContainsFunc(j.excluded, func(a []string) bool { return slices.Equal(a, at) })
}

// parted reports whether the rules of a kind whose rules are the leaves take a
// value apart.
func (j *reducer) isSplit(at []string, node *structuralschema.Structural) bool {
	is := func(all [][]string) bool {
		return slices.ContainsFunc(all, func(a []string) bool { return len(a) == len(at) && matchAddress(a, at) })
	}
	isMap := node.Type == "object" || node.XPreserveUnknownFields
	return isMap && !is(j.layout.Whole) || is(j.layout.Lists)
}

// goesOn reports whether the address of rules goes on below another one.
func isAbove(rule, at []string) bool { return len(rule) > len(at) && matchAddress(rule[:len(at)], at) }

func matchAddress(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool { return a == b || a == "*" || b == "*" })
}

// holding is what a field of a node holds.
type content int

const (
	noContent    content = iota // no content
	oneRule                     // one rule, or a part of it
	severalRules                // rules
)

// held returns what a field of a node holds.
func (j *reducer) contentOf(node *structuralschema.Structural, at []string, name string) content {
	at = append(slices.Clip(at), name)
	child := &structuralschema.Structural{}
	if p, ok := node.Properties[name]; ok {
		child = &p
	} else if others := node.AdditionalProperties; others != nil && others.Structural != nil {
		child = others.Structural
	}
	switch {
	case j.positionOf(at, child) != outside:
		return severalRules
	case len(at) <= len(j.location) || j.isExcluded(at):
		return noContent
	default:
		return oneRule
	}
}

// structure returns the schema without what sees no two rules at once, and
// whether anything is left.
func (j *reducer) structural(root *structuralschema.Structural) (*structuralschema.Structural, bool) {
	out, joins := j.node(root, nil)
	return &out, joins
}

// node returns the schema of a node without the fields and items that ask for
// nothing, and whether anything is left.
func (j *reducer) node(s *structuralschema.Structural, at []string) (out structuralschema.Structural, joins bool) {
	out.XPreserveUnknownFields = true
	is := j.positionOf(at, s)
	if is == outside {
		return out, false
	}
	out.ValueValidation = j.validations(s, at, is)
	joins = out.ValueValidation != nil
	if s.Items != nil {
		if items, asks := j.node(s.Items, append(slices.Clip(at), "*")); asks {
			out.Items, joins = &items, true
		}
		if s.XListType != nil && *s.XListType != "atomic" {
			out.XListType, out.XListMapKeys, joins = s.XListType, s.XListMapKeys, true
			j.require(at, nil)
		}
	}
	for name, p := range s.Properties {
		if field, asks := j.node(&p, append(slices.Clip(at), name)); asks {
			if out.Properties == nil {
				out.Properties = make(map[string]structuralschema.Structural)
			}
			out.Properties[name], joins = field, true
		}
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		if others, asks := j.node(a.Structural, append(slices.Clip(at), "*")); asks {
			out.AdditionalProperties, joins = &structuralschema.StructuralOrBool{Structural: &others}, true
		}
	}
	return out, joins
}

// asksOf returns the fields that a node asks for, nil if it asks for more.
func requiredFields(v *structuralschema.ValueValidation) fieldRefs {
	return validationRefs([]structuralschema.NestedValueValidation{{ValueValidation: *v}})
}

// values returns what a node asks of its value, as far as that concerns several
// rules; nil for nothing.
func (j *reducer) validations(s *structuralschema.Structural, at []string, is position) *structuralschema.ValueValidation {
	v := s.ValueValidation
	if v == nil {
		return nil
	}
	out := &structuralschema.ValueValidation{}
	concerns := func(all ...structuralschema.NestedValueValidation) bool {
		return len(all) > 0 && j.involvesSeveral(validationRefs(all), s, at)
	}
	for _, one := range v.AllOf {
		if concerns(one) {
			out.AllOf = append(out.AllOf, one)
		}
	}
	if concerns(v.AnyOf...) {
		out.AnyOf = v.AnyOf
	}
	if concerns(v.OneOf...) {
		out.OneOf = v.OneOf
	}
	if v.Not != nil && concerns(*v.Not) {
		out.Not = v.Not
	}
	if is == combining {
		out.Enum, out.UniqueItems = v.Enum, v.UniqueItems
		out.MinItems, out.MaxItems = v.MinItems, v.MaxItems
		out.MinProperties, out.MaxProperties = v.MinProperties, v.MaxProperties
		for _, name := range v.Required {
			if j.contentOf(s, at, name) != noContent {
				out.Required = append(out.Required, name)
			}
		}
	}
	asks := out.MinItems != nil || out.MaxItems != nil || out.MinProperties != nil || out.MaxProperties != nil || out.UniqueItems ||
		len(out.Enum)+len(out.Required)+len(out.AllOf)+len(out.AnyOf)+len(out.OneOf) > 0 || out.Not != nil
	if !asks {
		return nil
	}
	j.require(at, requiredFields(out))
	return out
}

// rules returns the schema with those of its rules in CEL alone that see
// several rules at once, and the types of what they may name.
func (j *reducer) celRules(root *structuralschema.Structural) *structuralschema.Structural {
	out := root.DeepCopy()
	j.stripNode(out, nil, false)
	return out
}

// strip takes out of a node what rules leaves out, and reports whether a rule is
// left. reached tells that one above the node may look into it.
func (j *reducer) stripNode(s *structuralschema.Structural, at []string, reached bool) (has bool) {
	if j.positionOf(at, s) == outside {
		removeRules(s)
		return false
	}
	all := s.XValidations
	s.XValidations = nil
	referenced := fieldRefs{}
	for _, r := range all {
		m := celRefs(r.Rule)
		if !j.involvesSeveral(m, s, at) {
			continue
		}
		if !j.showValues {
			r.MessageExpression = ""
		}
		s.XValidations, has = append(s.XValidations, r), true
		j.require(at, m)
		referenced = referenced.with(m).with(celRefs(r.MessageExpression))
		if r.FieldPath != "" {
			referenced = nil // it is looked up in the schema
		}
	}
	below := reached || has
	for name, p := range s.Properties {
		hasOwn := j.stripNode(&p, append(slices.Clip(at), name), below)
		s.Properties[name] = p
		// Each look at a field costs as much as the node has fields.
		if _, isNamed := referenced[name]; !hasOwn && !isNamed && referenced != nil && !reached {
			delete(s.Properties, name)
		}
		has = has || hasOwn
	}
	if s.Items != nil {
		has = j.stripNode(s.Items, append(slices.Clip(at), "*"), below) || has
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		has = j.stripNode(a.Structural, append(slices.Clip(at), "*"), below) || has
	}
	return has
}

// bare takes all rules out of a node.
func removeRules(s *structuralschema.Structural) {
	s.XValidations = nil
	for name, p := range s.Properties {
		removeRules(&p)
		s.Properties[name] = p
	}
	if s.Items != nil {
		removeRules(s.Items)
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		removeRules(a.Structural)
	}
}
