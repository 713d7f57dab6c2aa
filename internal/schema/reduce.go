package schema

import (
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"overrule.dev/overrule/internal/policykind"
)

// reducer reduces a schema to its cross-rule validations: those that involve more
// than one rule. Nodes above rules can have them. A node within a rule cannot: the
// API server validated it when the policy was written. Above the location of the
// rules, only validations that refer to the location count.
type reducer struct {
	layout       policykind.Layout
	location     []string // from the top
	excluded     [][]string
	showValues   bool          // CEL rules keep their messageExpression
	requirements []requirement // of the validations found so far
}

// position is the position of a node relative to the rules.
type position int

const (
	outside   position = iota // within a rule, or excluded
	above                     // on the way to the location of the rules
	combining                 // at or below the location, with rules below
)

// positionOf returns the position of the node at a path from the top, where * is
// any name or item.
func (red *reducer) positionOf(at []string, node *structuralschema.Structural) position {
	n := len(red.location)
	switch {
	case len(at) < n && slices.Equal(at, red.location[:len(at)]):
		return above
	case len(at) < n || !slices.Equal(at[:n], red.location) || red.isExcluded(at):
		return outside
	case len(at) == n || red.layout.Leaves && red.isSplit(at[n:], node):
		return combining
	case !red.layout.Leaves && slices.ContainsFunc(red.layout.Rules, func(a []string) bool { return isBelow(a, at[n:]) }):
		return combining
	default:
		return outside
	}
}

func (red *reducer) isExcluded(at []string) bool {
	return slices.ContainsFunc(red.excluded, func(a []string) bool { return slices.Equal(a, at) })
}

// isSplit reports whether a kind whose rules are the leaves splits a value into
// several rules.
func (red *reducer) isSplit(at []string, node *structuralschema.Structural) bool {
	isOneOf := func(paths [][]string) bool {
		return slices.ContainsFunc(paths, func(a []string) bool { return len(a) == len(at) && pathsMatch(a, at) })
	}
	isMap := node.Type == "object" || node.XPreserveUnknownFields
	return isMap && !isOneOf(red.layout.Whole) || isOneOf(red.layout.Lists)
}

// isBelow reports whether the path of rules is below another path.
func isBelow(rule, at []string) bool { return len(rule) > len(at) && pathsMatch(rule[:len(at)], at) }

// pathsMatch reports whether two paths are equal, where * matches any name.
func pathsMatch(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool { return a == b || a == "*" || b == "*" })
}

// content is how much of the rules a field of a node holds.
type content int

const (
	noContent    content = iota
	oneRule              // one rule, or a part of it
	severalRules         // more than one rule
)

// contentOf returns the content of a field of a node.
func (red *reducer) contentOf(node *structuralschema.Structural, at []string, name string) content {
	at = append(slices.Clip(at), name)
	child := &structuralschema.Structural{}
	if p, ok := node.Properties[name]; ok {
		child = &p
	} else if others := node.AdditionalProperties; others != nil && others.Structural != nil {
		child = others.Structural
	}
	switch {
	case red.positionOf(at, child) != outside:
		return severalRules
	case len(at) <= len(red.location) || red.isExcluded(at):
		return noContent
	default:
		return oneRule
	}
}

// structural returns the schema with its structural cross-rule validations alone,
// and whether there are any.
func (red *reducer) structural(root *structuralschema.Structural) (*structuralschema.Structural, bool) {
	out, found := red.node(root, nil)
	return &out, found
}

// node returns the schema of a node with its structural cross-rule validations
// alone, and whether there are any.
func (red *reducer) node(s *structuralschema.Structural, at []string) (out structuralschema.Structural, found bool) {
	out.XPreserveUnknownFields = true
	position := red.positionOf(at, s)
	if position == outside {
		return out, false
	}
	out.ValueValidation = red.validations(s, at, position)
	found = out.ValueValidation != nil
	if s.Items != nil {
		found = red.items(s, at, &out) || found
	}
	for name, p := range s.Properties {
		if field, ok := red.node(&p, append(slices.Clip(at), name)); ok {
			if out.Properties == nil {
				out.Properties = make(map[string]structuralschema.Structural)
			}
			out.Properties[name], found = field, true
		}
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		if others, ok := red.node(a.Structural, append(slices.Clip(at), "*")); ok {
			out.AdditionalProperties, found = &structuralschema.StructuralOrBool{Structural: &others}, true
		}
	}
	return out, found
}

// items adds the cross-rule validations of a list, and reports whether there are
// any.
func (red *reducer) items(s *structuralschema.Structural, at []string, out *structuralschema.Structural) (found bool) {
	if items, ok := red.node(s.Items, append(slices.Clip(at), "*")); ok {
		out.Items, found = &items, true
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		out.XListType, out.XListMapKeys, found = s.XListType, s.XListMapKeys, true
		red.require(at, nil)
	}
	return found
}

// validations returns the cross-rule validations of the value of a node, nil for
// none.
func (red *reducer) validations(s *structuralschema.Structural, at []string, p position) *structuralschema.ValueValidation {
	if s.ValueValidation == nil {
		return nil
	}
	out := red.combinators(s, at)
	if p == combining {
		red.addLimits(s, at, out)
	}
	if validatesNothing(out) {
		return nil
	}
	red.require(at, validationRefs([]structuralschema.NestedValueValidation{{ValueValidation: *out}}))
	return out
}

// combinators returns those of allOf, anyOf, oneOf and not that involve more than
// one rule.
func (red *reducer) combinators(s *structuralschema.Structural, at []string) *structuralschema.ValueValidation {
	v, out := s.ValueValidation, &structuralschema.ValueValidation{}
	involvesSeveral := func(all ...structuralschema.NestedValueValidation) bool {
		return len(all) > 0 && red.involvesSeveral(validationRefs(all), s, at)
	}
	for _, one := range v.AllOf {
		if involvesSeveral(one) {
			out.AllOf = append(out.AllOf, one)
		}
	}
	if involvesSeveral(v.AnyOf...) {
		out.AnyOf = v.AnyOf
	}
	if involvesSeveral(v.OneOf...) {
		out.OneOf = v.OneOf
	}
	if v.Not != nil && involvesSeveral(*v.Not) {
		out.Not = v.Not
	}
	return out
}

// addLimits adds the validations of a node that holds rules as a whole: its size,
// its values, its required fields.
func (red *reducer) addLimits(s *structuralschema.Structural, at []string, out *structuralschema.ValueValidation) {
	v := s.ValueValidation
	out.Enum, out.UniqueItems = v.Enum, v.UniqueItems
	out.MinItems, out.MaxItems = v.MinItems, v.MaxItems
	out.MinProperties, out.MaxProperties = v.MinProperties, v.MaxProperties
	for _, name := range v.Required {
		if red.contentOf(s, at, name) != noContent {
			out.Required = append(out.Required, name)
		}
	}
}

func validatesNothing(v *structuralschema.ValueValidation) bool {
	return v.MinItems == nil && v.MaxItems == nil && v.MinProperties == nil && v.MaxProperties == nil && !v.UniqueItems &&
		len(v.Enum)+len(v.Required)+len(v.AllOf)+len(v.AnyOf)+len(v.OneOf) == 0 && v.Not == nil
}

// celRules returns the schema with its cross-rule CEL rules alone, and the types
// that they may refer to.
func (red *reducer) celRules(root *structuralschema.Structural) *structuralschema.Structural {
	out := root.DeepCopy()
	red.stripNode(out, nil, false)
	return out
}

// stripNode removes from a node, in place, what celRules leaves out, and reports
// whether a CEL rule is left. inScope is set where a rule of a node above may refer
// to the node.
func (red *reducer) stripNode(s *structuralschema.Structural, at []string, inScope bool) (hasRules bool) {
	if red.positionOf(at, s) == outside {
		removeRules(s)
		return false
	}
	referenced := red.stripRules(s, at)
	hasRules = len(s.XValidations) > 0
	belowInScope := inScope || hasRules
	for name, p := range s.Properties {
		fieldHasRules := red.stripNode(&p, append(slices.Clip(at), name), belowInScope)
		s.Properties[name] = p
		// Each access to a field costs as much as the node has fields.
		if _, ok := referenced[name]; !fieldHasRules && !ok && referenced != nil && !inScope {
			delete(s.Properties, name)
		}
		hasRules = hasRules || fieldHasRules
	}
	if s.Items != nil {
		hasRules = red.stripNode(s.Items, append(slices.Clip(at), "*"), belowInScope) || hasRules
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		hasRules = red.stripNode(a.Structural, append(slices.Clip(at), "*"), belowInScope) || hasRules
	}
	return hasRules
}

// stripRules keeps the cross-rule CEL rules of a node itself, and returns the fields
// of the node that they refer to, nil if these are not known.
func (red *reducer) stripRules(s *structuralschema.Structural, at []string) (referenced fieldRefs) {
	all := s.XValidations
	s.XValidations = nil
	referenced = fieldRefs{}
	for _, r := range all {
		refs := celRefs(r.Rule)
		if !red.involvesSeveral(refs, s, at) {
			continue
		}
		if !red.showValues {
			r.MessageExpression = ""
		}
		s.XValidations = append(s.XValidations, r)
		red.require(at, refs)
		referenced = referenced.with(refs).with(celRefs(r.MessageExpression))
		if r.FieldPath != "" {
			referenced = nil // it is looked up in the schema
		}
	}
	return referenced
}

// removeRules removes all CEL rules from a node and the nodes below it.
func removeRules(s *structuralschema.Structural) {
	remove := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		s.XValidations = nil
		return true
	}}
	remove.Visit(s)
}
