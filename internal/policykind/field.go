package policykind

import (
	"errors"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// fields are the paths of the fields of a policy in its object.
type fields struct {
	targets []string // of Targets, "" for an implicit one
	blocks  []string // of Blocks, "" for one whose rules have other paths
	unset   []string // of the entries of Unset
}

// RuleField returns the field of a rule, such as spec.overrides.rules.a: in the block that
// has most of it. It is "" if the policy has nothing of the rule.
func (p *Policy) RuleField(rule string) string {
	key, err := merge.ParseKey(rule)
	if err != nil {
		return ""
	}
	for n := len(key.Segments()); n > 0; n-- {
		at, _ := key.Ancestor(n)
		for i, b := range slices.Backward(p.Blocks) {
			has := func(r merge.Rule) bool { return at.Holds(r.Key) || r.Key.Holds(at) }
			if p.fields.blocks[i] == "" || !slices.ContainsFunc(b.Rules, has) {
				continue
			}
			if strings.HasPrefix(rule, "[") {
				return p.fields.blocks[i] + rule
			}
			return p.fields.blocks[i] + "." + rule
		}
	}
	return ""
}

// UnsetField returns the field of the entry of an unset list that matches a rule, "" if
// none does.
func (p *Policy) UnsetField(rule string) string {
	key, err := merge.ParseKey(rule)
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(p.Unset, func(n merge.Name) bool { return n.Matches(key) })
	if i < 0 {
		return ""
	}
	return p.fields.unset[i]
}

// TargetField returns the field that names or selects a target, such as
// spec.targetRefs[0]; "" if none does.
func (p *Policy) TargetField(object api.Ref, section string, port int32) string {
	i := slices.IndexFunc(p.Targets, func(t Target) bool {
		of := t.Ref == object || t.Selector != nil && t.Ref.PolicyKind() == object.PolicyKind()
		return of && t.Section == section && t.Port == port
	})
	if i < 0 {
		return ""
	}
	return p.fields.targets[i]
}

// TargetsField returns the first field with targets, such as spec.targetRefs; "" if the
// policy names none.
func (p *Policy) TargetsField() string {
	if len(p.Targets) == 0 {
		return ""
	}
	at, _, _ := strings.Cut(p.fields.targets[0], "[")
	return at
}

// HasOneTarget reports whether the policy has a target, and cannot have a second one.
func (p *Policy) HasOneTarget() bool {
	all := p.Kind.Targets
	return len(all.Fields) == 1 && len(all.Selectors) == 0 && len(p.Targets) == 1 && p.fields.targets[0] == p.TargetsField()
}

// InvalidField returns the first field that is invalid, "" if none is.
func (p *Policy) InvalidField() string {
	list, ok := errors.AsType[utilerrors.Aggregate](p.Invalid)
	if !ok {
		return ""
	}
	first, _ := errors.AsType[*field.Error](list.Errors()[0]) // those of a field.ErrorList
	return first.Field
}
