package effective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// ErrTooMuch tells that a walk would cost more than it may. The error itself is a
// *TooMuchError.
var ErrTooMuch = errors.New("too much to judge")

// Budget limits what the conditions of one walk may cost together, and ends it
// with its context. It is not safe for concurrent use.
type Budget struct {
	ctx   context.Context //nolint:containedctx // a budget lives as long as its request
	limit uint64
	// perPath is what each path adds to the limit.
	perPath uint64
	spent   uint64
	// charges by policy; what is spent for none is for constraints and schemas.
	charges map[*merge.Policy]*charge
	paths   int
	last    *Effective // the path at hand
}

type charge struct {
	policy api.Ref
	cost   uint64
}

// NewBudget returns a budget of that many units of CEL cost.
func NewBudget(ctx context.Context, units uint64) *Budget { return &Budget{ctx: ctx, limit: units} }

// Grow makes each path that is walked add so many units to the budget.
func (b *Budget) Grow(perPath uint64) *Budget {
	b.perPath = perPath
	return b
}

// timed returns a budget that only ends at the same time: of what was there before
// a change, cost says nothing about the change.
func (b *Budget) timeOnly() *Budget { return NewBudget(b.ctx, math.MaxUint64) }

// Context returns the context that ends the budget.
func (b *Budget) Context() context.Context { return b.ctx }

// on tells which path is at hand.
func (b *Budget) startPath(e *Effective) {
	b.paths, b.last = b.paths+1, e
	if b.limit <= math.MaxUint64-b.perPath {
		b.limit += b.perPath
	}
}

// Spend implements merge.Meter. With no policy it is not a condition that costs.
func (b *Budget) Spend(by *merge.Policy, cost uint64) error {
	b.spent += cost
	if by != nil && cost > 0 {
		b.charge(by, cost)
	}
	if b.spent > b.limit {
		return b.tooMuch(nil)
	}
	return b.Alive()
}

// Alive returns an error once there is no time left.
func (b *Budget) Alive() error {
	if err := b.ctx.Err(); err != nil {
		return b.tooMuch(err)
	}
	return nil
}

func (b *Budget) charge(by *merge.Policy, cost uint64) {
	c := b.charges[by]
	if c == nil {
		c = &charge{}
		if b.last != nil {
			c.policy = b.last.Ref(by)
		}
		if b.charges == nil {
			b.charges = make(map[*merge.Policy]*charge)
		}
		b.charges[by] = c
	}
	c.cost += cost
}

// TooMuchError tells how far a walk came before it was too much. It is an
// ErrTooMuch.
type TooMuchError struct {
	// Paths that were walked by then, of those before a change or after it; the last
	// of them is At, nil if there was none.
	Paths int
	At    *Effective
	// Limit of what conditions may cost, in units of CEL cost; 0 where it is time
	// that ran out.
	Limit uint64
	// Dearest of Policies whose conditions were evaluated, and what its own cost;
	// zero if it is not they that cost the most, but constraints and schemas, or
	// time ran out although they cost little.
	Costliest     api.Ref
	CostliestCost uint64
	Policies      int

	cause error // of the context
}

func (b *Budget) tooMuch(cause error) *TooMuchError {
	e := &TooMuchError{Paths: b.paths, At: b.last, Policies: len(b.charges), cause: cause}
	if cause == nil {
		e.Limit = b.limit
	}
	if cause == nil || b.spent > minNamedCost {
		b.setCostliest(e)
	}
	return e
}

// slow is from which cost on conditions are named where time runs out: that of
// about a third of a second.
const minNamedCost = 500_000

// dearest names the policy whose conditions cost the most.
func (b *Budget) setCostliest(e *TooMuchError) {
	rest := b.spent
	for _, c := range b.charges {
		rest -= c.cost
		if c.cost > e.CostliestCost || c.cost == e.CostliestCost && api.CompareRefs(c.policy, e.Costliest) < 0 {
			e.Costliest, e.CostliestCost = c.policy, c.cost
		}
	}
	if rest > b.spent/2 { // those of constraints and schemas
		e.Costliest, e.CostliestCost = api.Ref{}, 0
	}
}

// Is makes it an ErrTooMuch.
func (*TooMuchError) Is(target error) bool { return target == ErrTooMuch }

// Unwrap returns why there was no time left, if that is it.
func (e *TooMuchError) Unwrap() error { return e.cause }

// Error tells what was too much, with figures.
func (e *TooMuchError) Error() string {
	switch {
	case errors.Is(e.cause, context.DeadlineExceeded) && e.Costliest != (api.Ref{}):
		return fmt.Sprintf("too much to judge in time: of the conditions of %s, those of %s cost the most, %d units%s",
			plural(e.Policies, "policy", "policies"), e.Costliest, e.CostliestCost, e.reached())
	case errors.Is(e.cause, context.DeadlineExceeded):
		return "too much to judge in time" + e.reached()
	case e.cause != nil:
		return fmt.Sprintf("stopped before all was judged (%v)%s", e.cause, e.reached())
	case e.Costliest == (api.Ref{}):
		return fmt.Sprintf("too much to judge: what constraints and schemas ask costs more than the %d units that one write may take%s", e.Limit, e.reached())
	case e.Policies == 1:
		return fmt.Sprintf("too much to judge: the conditions of %s cost more than the %d units that one write may take%s", e.Costliest, e.Limit, e.reached())
	default:
		return fmt.Sprintf("too much to judge: the conditions of %d policies cost more than the %d units that one write may take, those of %s %d, the most%s",
			e.Policies, e.Limit, e.Costliest, e.CostliestCost, e.reached())
	}
}

// reached says how far the walk came.
func (e *TooMuchError) reached() string {
	if e.At == nil {
		return "; it ended before the first path"
	}
	policies, rules := e.Load()
	return fmt.Sprintf("; it ended at path %d: %s, with %s of %s", e.Paths, placeOf(&e.At.Path),
		plural(rules, "rule", "rules"), plural(policies, e.At.Kind.Kind, "policies of "+e.At.Kind.Kind))
}

// placeOf names the objects of a path that it may be too large by.
func placeOf(p *gateway.Path) string {
	var at []string
	if p.Virtual != nil {
		at = append(at, p.Virtual.String())
	}
	if p.Route != nil {
		at = append(at, p.Route.Ref().String())
	}
	if p.Gateway != nil {
		at = append(at, fmt.Sprintf("%s (%s)", p.Gateway.Ref(), plural(len(p.Gateway.Listeners), "listener", "listeners")))
	}
	if p.Service != nil {
		at = append(at, p.Service.Ref().String())
	}
	return strings.Join(at, " on ")
}

// Load counts the policies on the last path, and their rules.
func (e *TooMuchError) Load() (policies, rules int) {
	if e.At == nil {
		return 0, 0
	}
	for i := range e.At.Layers {
		for _, b := range e.At.Layers[i].Blocks {
			rules += len(b.Rules)
		}
	}
	return len(e.At.Layers), rules
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
