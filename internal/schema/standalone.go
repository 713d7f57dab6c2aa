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

// standaloneKey is the cache key of a policy that is checked by itself.
type standaloneKey struct {
	kind   *policykind.Kind
	policy *merge.Policy
}

// CheckStandalone validates a policy of a path by itself, against the whole schema
// of its kind. A write does not need this, since the API server validated it. A
// stored object may be older than the schema, and a file was never validated.
//
// The only error is that of the budget, as of Check.
func (c *Checker) CheckStandalone(e *effective.Effective, policy *merge.Policy, b *effective.Budget) (Verdict, error) {
	if e.Kind.Schema() == nil || e.Kind.Named != nil { // one rule comes whole from the object
		return Verdict{}, nil
	}
	return c.cached(standaloneKey{e.Kind, policy}, b, func() (Verdict, uint64) {
		return c.planOf(e.Kind).checkStandalone(b.Context(), e, policy)
	})
}

// checkStandalone checks each block of a policy by itself.
func (p *plan) checkStandalone(ctx context.Context, e *effective.Effective, policy *merge.Policy) (v Verdict, cost uint64) {
	if p.unchecked != "" {
		return Verdict{Unchecked: p.unchecked}, 0
	}
	for i := range policy.Blocks {
		spec := p.specOf(effectiveRules(&policy.Blocks[i]))
		at := p.locationOfBlock(policy.Blocks[i].Block, spec)
		if len(spec) == 0 || at == nil {
			continue
		}
		one, blockCost := p.validate(ctx, e, at, spec)
		cost += blockCost
		v.Problems = append(append(v.Problems, one.Problems...), p.validateFull(e, at, spec)...)
		if one.Unchecked != "" {
			v.Unchecked = one.Unchecked
		}
	}
	slices.SortFunc(v.Problems, compareProblems)
	v.Problems = slices.CompactFunc(v.Problems, func(a, b Problem) bool { return a.Message == b.Message })
	return v, cost
}

// locationOfBlock returns the location of a block, or another one that accepts its
// spec; nil if none does.
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
		if len(pl.at) > 0 && slices.Contains(names, pl.at[len(pl.at)-1]) && pl.accepts(spec) {
			return pl
		}
	}
	return p.locationOf(spec)
}

// validateFull validates a spec at a location against the whole schema, CEL rules
// excepted.
func (p *plan) validateFull(e *effective.Effective, at *location, spec map[string]any) []Problem {
	p.fullOnce.Do(func() {
		p.full = openAPIValidator{validate.NewSchemaValidator(p.schema.ToKubeOpenAPI(), nil, "", strfmt.Default)}
	})
	errs := validation.ValidateCustomResource(nil, p.object(e, at, spec), p.full)
	return problems(slices.DeleteFunc(errs, func(err *field.Error) bool { return at.isExcluded(err.Field) }), p.showValues)
}
