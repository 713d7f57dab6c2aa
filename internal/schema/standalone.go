package schema

import (
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// alone identifies a policy that is checked by itself.
type standaloneKey struct {
	kind   *policykind.Kind
	policy *merge.Policy
}

// CheckStandalone tells what is wrong with a policy of a path by itself, against the
// whole schema of its kind. A write is not held to that, since the API server has
// checked it; what is stored may be older than the schema, and a file has been
// checked by no one.
//
// The only error is that of the budget, as of Check.
func (c *Checker) CheckStandalone(e *effective.Effective, policy *merge.Policy, b *effective.Budget) (Verdict, error) {
	if e.Kind.Schema() == nil {
		return Verdict{}, nil
	}
	at := standaloneKey{e.Kind, policy}
	if v, ok := c.verdicts.Get(at); ok {
		return v.(Verdict), nil //nolint:forcetypeassert // it holds nothing else
	}
	if err := b.Spend(nil, 0); err != nil {
		return Verdict{}, err
	}
	v, cost := c.planOf(e.Kind).checkStandalone(b.Context(), e, policy)
	if err := b.Spend(nil, max(cost, includedCost)-includedCost); err != nil {
		return Verdict{}, err
	}
	c.verdicts.Add(at, v)
	return v, nil
}

// alone checks each block of a policy by itself.
func (p *plan) checkStandalone(ctx context.Context, e *effective.Effective, policy *merge.Policy) (v Verdict, cost uint64) {
	if p.unchecked != "" {
		return Verdict{Unchecked: p.unchecked}, 0
	}
	for i := range policy.Blocks {
		spec := p.specOf(whole(&policy.Blocks[i]))
		at := p.locationOfBlock(policy.Blocks[i].Block, spec)
		if len(spec) == 0 || at == nil {
			continue
		}
		some, more := p.validate(ctx, e, at, spec)
		cost += more
		v.Problems = append(append(v.Problems, some.Problems...), p.validateFull(e, at, spec)...)
		if some.Unchecked != "" {
			v.Unchecked = some.Unchecked
		}
	}
	slices.SortFunc(v.Problems, compareProblems)
	v.Problems = slices.CompactFunc(v.Problems, func(a, b Problem) bool { return a.Message == b.Message })
	return v, cost
}

// placeOfBlock returns the place of a block, or another one that has all the fields
// of its spec; nil if none does.
func (p *plan) locationOfBlock(b merge.Block, spec map[string]any) *location {
	var names []string
	switch b {
	case merge.Defaults:
		names = p.kind.Blocks.Defaults
	case merge.Overrides:
		names = p.kind.Blocks.Overrides
	default:
	}
	for _, pl := range p.locations {
		if slices.Contains(names, pl.at[len(pl.at)-1]) && pl.accepts(spec) {
			return pl
		}
	}
	return p.locationOf(spec)
}

// values checks a spec in a place against all that the schema says of values.
func (p *plan) validateFull(e *effective.Effective, at *location, spec map[string]any) []Problem {
	p.fullOnce.Do(func() {
		p.full = openAPIValidator{validate.NewSchemaValidator(p.schema.ToKubeOpenAPI(), nil, "", strfmt.Default)}
	})
	errs := validation.ValidateCustomResource(nil, p.object(e, at, spec), p.full)
	return problems(slices.DeleteFunc(errs, func(err *field.Error) bool { return at.isExcluded(err.Field) }), p.showValues)
}
