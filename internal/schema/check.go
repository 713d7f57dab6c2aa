package schema

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// check checks an effective spec. What is wrong with each block of the policies
// on its path, too, put in the same place by itself, is no fault of the merge:
// the schema asks there for something that is no rule.
func (p *plan) check(ctx context.Context, e *effective.Effective) (Verdict, uint64) {
	rules := ofPolicies(e.Rules)
	spec := p.specOf(rules)
	at := p.placeOf(spec)
	if len(spec) == 0 || at == nil || at.separable() || !at.met(e) {
		return Verdict{}, 0
	}
	v, cost := p.examine(ctx, e, at, spec)
	blocks := blocksOf(e)
	common := slices.Clone(v.Problems)
	for i := 0; i < len(blocks) && len(common) > 0; i++ {
		alone, more := p.examine(ctx, e, at, p.specOf(blocks[i]))
		cost += more
		common = slices.DeleteFunc(common, func(one Problem) bool { return !alone.Has(one) })
	}
	v.Problems = slices.DeleteFunc(v.Problems, func(one Problem) bool { return slices.Contains(common, one) })
	return v, cost
}

// blocksOf returns the blocks of the policies on a path, each with all of its
// rules.
func blocksOf(e *effective.Effective) [][]merge.Effective {
	var out [][]merge.Effective
	for _, o := range e.Outcomes {
		for i := range o.Policy.Blocks {
			out = append(out, whole(&o.Policy.Blocks[i]))
		}
	}
	return out
}

func whole(b *merge.Rules) []merge.Effective {
	out := make([]merge.Effective, len(b.Rules))
	for i := range b.Rules {
		out[i].Rule = &b.Rules[i]
	}
	return out
}

// examine checks a spec in a place.
func (p *plan) examine(ctx context.Context, e *effective.Effective, at *place, spec map[string]any) (v Verdict, cost uint64) {
	object := p.object(e, at, spec)
	errs := validation.ValidateCustomResource(nil, object, at.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, at.joints, object)...) // both take nil for nothing to check
	if at.rules != nil {
		of, left := at.rules.Validate(ctx, nil, p.schema, object, nil, checkLimit)
		if left < 0 {
			v.Unchecked = fmt.Sprintf("effective policies of %s are not checked against all of its definition: the rules in CEL would cost more than %d to check",
				p.kind.Ref(), checkLimit)
			of, left = nil, 0 // no rule is broken for certain
		}
		errs, cost = append(errs, of...), uint64(checkLimit-left)
	}
	errs = slices.DeleteFunc(errs, func(err *field.Error) bool { return at.isBeside(err.Field) })
	v.Problems = problems(errs, p.showValues)
	return v, cost
}
