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
	// mostPlans is more than the policy kinds of a cluster.
	maxPlans = 128
	// mostVerdicts is how many are remembered: those of the stacks that many
	// paths share, above all.
	maxVerdicts = 4096
	// freeCost is what the rules in CEL of one check may cost, in units of CEL
	// cost, before they are booked: that of ordinary ones.
	includedCost = 500
)

// Problem is what is wrong with an effective spec.
type Problem struct {
	// Message names the field and says what is wrong with it, without the value:
	// it is the same on every path.
	Message string
	// Excess tells, where something is to be counted, two such problems apart:
	// the greater one is the worse.
	Excess int64
}

// Verdict is what is to be said of an effective spec.
type Verdict struct {
	// Problems are sorted by message, each message once.
	Problems []Problem
	// Unchecked tells why something could not be checked, empty if all was.
	Unchecked string
}

// Has reports whether the verdict has a problem already that is as bad.
func (v Verdict) Has(p Problem) bool {
	return slices.ContainsFunc(v.Problems, func(o Problem) bool { return o.Message == p.Message && o.Excess >= p.Excess })
}

// HasMessage reports whether the verdict has a problem of the same message, however bad.
func (v Verdict) HasMessage(p Problem) bool {
	return slices.ContainsFunc(v.Problems, func(o Problem) bool { return o.Message == p.Message })
}

// Checker checks effective specs. It remembers what it made of schemas and of
// the stacks of policies that it saw last. It is safe for concurrent use.
type Checker struct {
	mu         sync.Mutex
	plans      *lru.Cache // *policykind.Kind to *planned
	verdicts   *lru.Cache // stack to Verdict
	showValues bool       // shown in messages
}

// stack identifies an effective policy: the memo of the engine gives the same
// result for the same stack of policies.
type stack struct {
	kind   *policykind.Kind
	result *merge.Result
}

// planned is a plan that is made when it is first asked for.
type lazyPlan struct {
	once sync.Once
	plan *plan
}

// NewChecker returns a Checker. With values, messages quote what the schema's own
// messages quote of an effective spec. Without, they depend on no value: readers may
// not be allowed to read all of the policies that it comes from.
func NewChecker(values bool) *Checker {
	return &Checker{plans: lru.New(maxPlans), verdicts: lru.New(maxVerdicts), showValues: values}
}

// Check tells what is wrong with the effective spec of a path. There is nothing
// to say of one that comes from a single block of a policy, which the API
// server has checked, of a kind that collects, where each policy is in force by
// itself, and of a kind without a schema.
//
// The only error is that of the budget (effective.ErrTooMuch): each check needs
// it to last, and costs that are out of the ordinary are booked.
func (c *Checker) Check(e *effective.Effective, b *effective.Budget) (Verdict, error) {
	if e == nil || e.Kind.Schema() == nil || e.Kind.SameTarget == api.Collect || !isMerged(e) {
		return Verdict{}, nil
	}
	p := c.planOf(e.Kind)
	if p.isEmpty() {
		return Verdict{Unchecked: p.unchecked}, nil
	}
	at := stack{e.Kind, e.Result}
	if v, ok := c.verdicts.Get(at); ok {
		return v.(Verdict), nil //nolint:forcetypeassert // it holds nothing else
	}
	if err := b.Spend(nil, 0); err != nil {
		return Verdict{}, err
	}
	v, cost := p.check(b.Context(), e)
	if err := b.Spend(nil, max(cost, includedCost)-includedCost); err != nil {
		return Verdict{}, err
	}
	c.verdicts.Add(at, v)
	return v, nil
}

func (c *Checker) planOf(k *policykind.Kind) *plan {
	c.mu.Lock()
	var entry *lazyPlan
	if had, ok := c.plans.Get(k); ok {
		entry = had.(*lazyPlan) //nolint:forcetypeassert // it holds nothing else
	} else {
		entry = &lazyPlan{}
		c.plans.Add(k, entry)
	}
	c.mu.Unlock()
	entry.once.Do(func() { entry.plan = newPlan(k, c.showValues) })
	return entry.plan
}

// merged reports whether more than one block made the effective policy, or only
// a part of one is in force, or took something out.
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

// ofPolicies returns the rules that policies set: those of a route's own fields
// are beside them.
func policyRules(rules []merge.Effective) []merge.Effective {
	own := func(r merge.Effective) bool { return r.From.Block == merge.Object }
	if !slices.ContainsFunc(rules, own) {
		return rules
	}
	return slices.DeleteFunc(slices.Clone(rules), own)
}

// check checks an effective spec. What is wrong with each block of the policies
// on its path, too, put in the same place by itself, is no fault of the merge:
// the schema asks there for something that is no rule.
func (p *plan) check(ctx context.Context, e *effective.Effective) (Verdict, uint64) {
	rules := policyRules(e.Rules)
	spec := p.specOf(rules)
	at := p.locationOf(spec)
	if len(spec) == 0 || at == nil || at.separable() || !at.spansBlocks(e) {
		return Verdict{}, 0
	}
	v, cost := p.validate(ctx, e, at, spec)
	blocks := blocksOf(e)
	common := slices.Clone(v.Problems)
	for i := 0; i < len(blocks) && len(common) > 0; i++ {
		alone, more := p.validate(ctx, e, at, p.specOf(blocks[i]))
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
func (p *plan) validate(ctx context.Context, e *effective.Effective, at *location, spec map[string]any) (v Verdict, cost uint64) {
	object := p.object(e, at, spec)
	errs := validation.ValidateCustomResource(nil, object, at.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, at.structural, object)...) // both take nil for nothing to check
	if at.celRules != nil {
		of, left := at.celRules.Validate(ctx, nil, p.schema, object, nil, checkLimit)
		if left < 0 {
			v.Unchecked = fmt.Sprintf("effective policies of %s are not checked against all of its definition: the rules in CEL would cost more than %d to check",
				p.kind.Ref(), checkLimit)
			of, left = nil, 0 // no rule is broken for certain
		}
		errs, cost = append(errs, of...), uint64(checkLimit-left)
	}
	errs = slices.DeleteFunc(errs, func(err *field.Error) bool { return at.isExcluded(err.Field) })
	v.Problems = problems(errs, p.showValues)
	return v, cost
}
