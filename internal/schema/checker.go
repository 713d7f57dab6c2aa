package schema

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

const (
	// maxPlans bounds the cache of plans. It is more than the policy kinds of a cluster.
	maxPlans = 128
	// maxVerdicts bounds the cache of verdicts. It mainly serves stacks of policies
	// that many paths share.
	maxVerdicts = 4096
	// includedCost is the cost of the CEL rules of one check, in units of CEL cost,
	// that is not charged to the budget: that of ordinary rules.
	includedCost = 500
)

// Problem is a validation error of an effective spec.
type Problem struct {
	// Message names the field and what is wrong with it, without the value: it is
	// the same on every path.
	Message string
	// Excess is the distance from a limit, where something is counted. Of two
	// problems with the same message, the one with the greater excess is worse.
	Excess int64
}

// Verdict is the result of validating an effective spec.
type Verdict struct {
	// Problems are sorted by message, each message once.
	Problems []Problem
	// Unchecked is why something could not be checked, empty if everything was.
	Unchecked string
}

// Has reports whether the verdict has the same problem with the same excess or a
// greater one.
func (v Verdict) Has(p Problem) bool {
	return slices.ContainsFunc(v.Problems, func(o Problem) bool { return o.Message == p.Message && o.Excess >= p.Excess })
}

// HasMessage reports whether the verdict has a problem with the same message, whatever
// its excess.
func (v Verdict) HasMessage(p Problem) bool {
	return slices.ContainsFunc(v.Problems, func(o Problem) bool { return o.Message == p.Message })
}

// Checker validates effective specs. It caches what it compiled from schemas, and
// the verdicts of recent stacks of policies. It is safe for concurrent use.
type Checker struct {
	mu         sync.Mutex
	plans      *lru.Cache // *policykind.Kind to func() *plan, which compiles it once
	verdicts   *lru.Cache // stack to Verdict
	showValues bool       // in messages
}

// stack identifies an effective policy: the memo of the engine gives the same
// result for the same stack of policies.
type stack struct {
	kind   *policykind.Kind
	result *merge.Result
}

// NewChecker returns a Checker. With showValues, messages quote values of effective
// specs as the messages of the API server do. Without, they depend on no value:
// readers may not be allowed to read all of the policies that the spec comes from.
func NewChecker(showValues bool) *Checker {
	return &Checker{plans: lru.New(maxPlans), verdicts: lru.New(maxVerdicts), showValues: showValues}
}

// Check validates the effective spec of a path. The verdict is empty for a spec that
// comes from a single block of a policy, which the API server validated; for a kind
// that collects, where each policy is in force by itself; and for a kind without a
// schema.
//
// The only error is that of the budget (effective.ErrTooMuch). A cost above
// includedCost is charged to the budget.
func (c *Checker) Check(e *effective.Effective, b *effective.Budget) (Verdict, error) {
	if e == nil || e.Kind.Schema() == nil || e.Kind.SameTarget == api.Collect || e.Kind.Named != nil || !isMerged(e) {
		return Verdict{}, nil
	}
	p := c.planOf(e.Kind)
	if p.isEmpty() {
		return Verdict{Unchecked: p.unchecked}, nil
	}
	return c.cached(stack{e.Kind, e.Result}, b, func() (Verdict, uint64) { return p.check(b.Context(), e) })
}

// cached returns the verdict of a key, which check computes and its cost.
func (c *Checker) cached(key any, b *effective.Budget, check func() (Verdict, uint64)) (Verdict, error) {
	if v, ok := c.verdicts.Get(key); ok {
		return v.(Verdict), nil //nolint:forcetypeassert // the cache holds nothing else
	}
	if err := b.Spend(nil, 0); err != nil {
		return Verdict{}, err
	}
	v, cost := check()
	if err := b.Spend(nil, max(cost, includedCost)-includedCost); err != nil {
		return Verdict{}, err
	}
	c.verdicts.Add(key, v)
	return v, nil
}

func (c *Checker) planOf(k *policykind.Kind) *plan {
	c.mu.Lock()
	compiled, ok := c.plans.Get(k)
	if !ok {
		compiled = sync.OnceValue(func() *plan { return newPlan(k, c.showValues) })
		c.plans.Add(k, compiled)
	}
	c.mu.Unlock()
	return compiled.(func() *plan)() //nolint:forcetypeassert // the cache holds nothing else
}

// isMerged reports whether the effective policy comes from more than one block, or
// from a part of one block alone, or has an unset rule.
func isMerged(e *effective.Effective) bool {
	rules := policyRules(e.Rules)
	for _, r := range rules {
		if r.Value == nil || r.From.Policy != rules[0].From.Policy || r.From.Block != rules[0].From.Block {
			return true
		}
	}
	return len(rules) > 0 && !slices.ContainsFunc(rules[0].From.Policy.Blocks, func(b merge.Rules) bool {
		return len(b.Rules) == len(rules) && sameRules(b, rules)
	})
}

func sameRules(b merge.Rules, rules []merge.Effective) bool {
	for i := range rules {
		if &b.Rules[i] != rules[i].Rule {
			return false
		}
	}
	return true
}

// policyRules returns the rules that policies set, without those of a route's own
// fields.
func policyRules(rules []merge.Effective) []merge.Effective {
	own := func(r merge.Effective) bool { return r.From.Block == merge.Object }
	if !slices.ContainsFunc(rules, own) {
		return rules
	}
	return slices.DeleteFunc(slices.Clone(rules), own)
}

// check validates an effective spec. A problem that each block of the policies on
// the path has by itself, at the same location, is not caused by the merge: the
// schema requires something there that is not a rule.
func (p *plan) check(ctx context.Context, e *effective.Effective) (Verdict, uint64) {
	rules := p.kind.OneOfEachKey(policyRules(e.Rules))
	spec := p.specOf(rules)
	at := p.locationOf(spec)
	if len(spec) == 0 || at == nil || at.separable() || !at.spansBlocks(e) {
		return Verdict{}, 0
	}
	v, cost := p.validate(ctx, e, at, spec)
	blocks := blocksOf(e)
	common := slices.Clone(v.Problems)
	for i := 0; i < len(blocks) && len(common) > 0; i++ {
		ofBlock, blockCost := p.validate(ctx, e, at, p.specOf(blocks[i]))
		cost += blockCost
		common = slices.DeleteFunc(common, func(p Problem) bool { return !ofBlock.Has(p) })
	}
	v.Problems = slices.DeleteFunc(v.Problems, func(p Problem) bool { return slices.Contains(common, p) })
	return v, cost
}

// blocksOf returns the blocks of the policies on a path, each with all of its
// rules.
func blocksOf(e *effective.Effective) [][]merge.Effective {
	var out [][]merge.Effective
	for _, o := range e.Outcomes {
		for _, b := range o.Blocks() {
			out = append(out, effectiveRules(&b))
		}
	}
	return out
}

// effectiveRules returns all rules of a block, as if they were in force.
func effectiveRules(b *merge.Rules) []merge.Effective {
	out := make([]merge.Effective, len(b.Rules))
	for i := range b.Rules {
		out[i].Rule = &b.Rules[i]
	}
	return out
}

// validate validates a spec at a location against the cross-rule validations.
func (p *plan) validate(ctx context.Context, e *effective.Effective, at *location, spec map[string]any) (v Verdict, cost uint64) {
	object := p.object(e, at, spec)
	errs := validation.ValidateCustomResource(nil, object, at.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, at.structural, object)...) // both take nil for nothing to check
	if at.celRules != nil {
		celErrs, left := at.celRules.Validate(ctx, nil, p.schema, object, nil, checkLimit)
		if left < 0 {
			v.Unchecked = fmt.Sprintf("effective policies of %s are not validated against all of its CRD: its CEL rules exceed the cost limit of %d",
				p.kind.Ref(), checkLimit)
			celErrs, left = nil, 0 // no violation is certain
		}
		errs, cost = append(errs, celErrs...), uint64(checkLimit-left)
	}
	errs = slices.DeleteFunc(errs, func(err *field.Error) bool { return at.isExcluded(err.Field) })
	v.Problems = problems(errs, p.showValues)
	return v, cost
}
