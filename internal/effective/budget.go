package effective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// ErrTooMuch is matched by the error of a walk that exceeds its budget, a
// *TooMuchError.
var ErrTooMuch = errors.New("evaluation exceeds its budget")

// Budget limits the total cost of the conditions of one walk, and ends the walk with
// its context. It is not safe for concurrent use.
type Budget struct {
	ctx   context.Context //nolint:containedctx // a budget lives as long as its request
	limit uint64
	// perPath is added to the limit by each path.
	perPath uint64
	spent   uint64
	// charges by policy. Costs without a policy are those of constraints and schemas.
	charges map[*merge.Policy]*charge
	paths   int
	last    *Effective // the current path

	began  time.Time
	waited time.Duration // in Wait
}

type charge struct {
	policy api.Ref
	cost   uint64
}

// NewBudget returns a budget of a number of units of CEL cost.
func NewBudget(ctx context.Context, units uint64) *Budget {
	return &Budget{ctx: ctx, limit: units, began: time.Now()}
}

// Grow has each path that is walked add units to the budget.
func (b *Budget) Grow(perPath uint64) *Budget {
	b.perPath = perPath
	return b
}

// timeOnly returns a budget with the same context and no cost limit, for the state
// before a change: its cost is not caused by the change.
func (b *Budget) timeOnly() *Budget { return NewBudget(b.ctx, math.MaxUint64) }

// Context returns the context that ends the budget.
func (b *Budget) Context() context.Context { return b.ctx }

// startPath makes a path the current one.
func (b *Budget) startPath(e *Effective) {
	b.paths, b.last = b.paths+1, e
	if b.limit <= math.MaxUint64-b.perPath {
		b.limit += b.perPath
	}
}

// Spend implements merge.Meter. by is nil if the cost is not that of a condition.
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

// Alive returns an error once the context has ended.
func (b *Budget) Alive() error {
	if err := b.ctx.Err(); err != nil {
		return b.tooMuch(err)
	}
	return nil
}

// Wait calls a function that waits for others, such as a read from the API server.
func (b *Budget) Wait(call func() error) error {
	began := time.Now()
	defer func() { b.waited += time.Since(began) }()
	return call()
}

// Exceeded returns an error if the context has ended and at least half of the time until
// then was not spent in Wait, and nil otherwise. So it tells an evaluation that takes too
// long from an API server that does not answer, whatever failed when the context ended.
func (b *Budget) Exceeded() *TooMuchError {
	if err := b.ctx.Err(); err != nil && b.waited <= time.Since(b.began)/2 {
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

// TooMuchError is the error of a walk that exceeded its budget. It is an ErrTooMuch.
type TooMuchError struct {
	// Paths is the number of paths that were walked, of those before a change or of
	// those after it. At is the last of them, nil if there was none.
	Paths int
	At    *Effective
	// Limit in units of CEL cost; 0 if the context ended.
	Limit uint64
	// Costliest is the policy whose conditions cost the most, and CostliestCost their
	// cost; Policies is the number of policies whose conditions were evaluated. They
	// are zero if constraints and schemas cost more than half, or if the context ended
	// and the conditions cost little.
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

// minNamedCost is the cost above which a TooMuchError names a policy when the context
// ended, about a third of a second.
const minNamedCost = 500_000

// setCostliest sets the policy whose conditions cost the most.
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

// Unwrap returns the error of the context, nil if the cost limit was exceeded.
func (e *TooMuchError) Unwrap() error { return e.cause }

// Error returns what exceeded the budget, with figures.
func (e *TooMuchError) Error() string {
	switch {
	case errors.Is(e.cause, context.DeadlineExceeded) && e.Costliest != (api.Ref{}):
		return fmt.Sprintf("evaluation did not finish in time: of the conditions of %s, those of %s cost the most, %d units%s",
			plural(e.Policies, "policy", "policies"), e.Costliest, e.CostliestCost, e.reached())
	case errors.Is(e.cause, context.DeadlineExceeded):
		return "evaluation did not finish in time" + e.reached()
	case e.cause != nil:
		return fmt.Sprintf("evaluation was canceled (%v)%s", e.cause, e.reached())
	case e.Costliest == (api.Ref{}):
		return fmt.Sprintf("evaluation is too expensive: constraints and schemas cost more than the limit of %d units per write%s", e.Limit, e.reached())
	case e.Policies == 1:
		return fmt.Sprintf("evaluation is too expensive: the conditions of %s cost more than the limit of %d units per write%s", e.Costliest, e.Limit, e.reached())
	default:
		return fmt.Sprintf("evaluation is too expensive: the conditions of %d policies cost more than the limit of %d units per write, those of %s %d, the most%s",
			e.Policies, e.Limit, e.Costliest, e.CostliestCost, e.reached())
	}
}

// reached describes where the walk stopped.
func (e *TooMuchError) reached() string {
	if e.At == nil {
		return "; it stopped before the first path"
	}
	policies, rules := e.Load()
	return fmt.Sprintf("; it stopped at path %d: %s, with %s of %s", e.Paths, placeOf(&e.At.Path),
		plural(rules, "rule", "rules"), plural(policies, e.At.Kind.Kind, "policies of "+e.At.Kind.Kind))
}

// placeOf names the objects that decide the size of a path.
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
