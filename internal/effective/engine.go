package effective

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// Engine computes effective policies. Its memo is shared by everyone who uses
// it; an Engine is safe for concurrent use.
type Engine struct {
	memo   memo
	shapes sync.Map // of kinds, each *shape
}

// NewEngine returns an engine.
func NewEngine() *Engine { return &Engine{} }

// Effective is the effective policy of one kind on one path.
type Effective struct {
	Kind *policykind.Kind
	Path hierarchy.Path
	// Layers are the policies on the path, and below them its own fields.
	Layers []merge.Layer
	*merge.Result
	// Outcomes of the policies, from the highest to the lowest, each once.
	Outcomes []merge.Outcome

	member *member       // of the path's rule whose fields are controlled, or nil
	object *merge.Policy // what the route itself says of these fields, or nil
}

// Level returns the level of the path at which a policy is attached, the
// highest if it is at several.
func (e *Effective) Level(p *merge.Policy) hierarchy.Level {
	level := hierarchy.LevelObject
	for _, l := range e.Layers {
		if l.Policy == p {
			level = min(level, hierarchy.Level(l.Level))
		}
	}
	return level
}

// Ref names a policy of the effective policy's kind, or the route whose own
// field it stands for.
func (e *Effective) Ref(p *merge.Policy) api.Ref {
	if p == e.object && p != nil {
		return e.Path.Route.Ref()
	}
	return api.Ref{Group: e.Kind.Group, Kind: e.Kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// Own returns what became of the fields of the path's route itself, nil where
// the kind controls none that it sets.
func (e *Effective) Own() *merge.Outcome {
	if e.object == nil {
		return nil
	}
	return &e.Result.Outcomes[len(e.Result.Outcomes)-1]
}

// Spec returns the effective spec, or in a kind that collects the list of
// specs in their order. The values in it are shared: do not edit.
func (e *Effective) Spec() any {
	if e.Kind.SameTarget != api.Collect {
		return e.Kind.Shape(e.Result.Spec())
	}
	rules := e.collected()
	out := make([]any, len(rules))
	for i, r := range rules {
		out[i] = r.Value
	}
	return out
}

// collected returns the rules of a kind that collects in their order: from the
// highest to the lowest, or first in the kind's own order if that holds across
// levels.
func (e *Effective) collected() []merge.Effective {
	across := e.Kind.Order != nil && e.Kind.Order.AcrossLevels
	rules := slices.Clone(e.Rules)
	slices.SortStableFunc(rules, func(a, b merge.Effective) int {
		x, y := a.From.Policy, b.From.Policy
		own := 0
		if across {
			own = cmp.Compare(x.Rank, y.Rank)
		}
		return cmp.Or(own,
			merge.Compare(merge.Layer{Policy: x, Level: int(e.Level(x))}, merge.Layer{Policy: y, Level: int(e.Level(y))}))
	})
	return rules
}

// ErrTooMuch tells that a walk would cost more than it may.
var ErrTooMuch = errors.New("too much to judge")

// Budget limits what the conditions of one walk may cost together, and ends it
// with its context. It is not safe for concurrent use.
type Budget struct {
	ctx  context.Context //nolint:containedctx // a budget lives as long as its request
	left uint64
}

// NewBudget returns a budget of that many units of CEL cost.
func NewBudget(ctx context.Context, units uint64) *Budget { return &Budget{ctx: ctx, left: units} }

// Context returns the context that ends the budget.
func (b *Budget) Context() context.Context { return b.ctx }

// Spend implements merge.Meter.
func (b *Budget) Spend(_ *merge.Policy, cost uint64) error {
	if cost > b.left {
		return fmt.Errorf("%w: the conditions of the policies on these paths cost more than one request may", ErrTooMuch)
	}
	b.left -= cost
	return b.alive()
}

func (b *Budget) alive() error {
	if err := b.ctx.Err(); err != nil {
		return fmt.Errorf("%w before the deadline: %w", ErrTooMuch, err)
	}
	return nil
}
