package effective

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
)

// Engine computes effective policies. Its memo is shared by everyone who uses
// it; an Engine is safe for concurrent use.
type Engine struct {
	memo memo
}

// NewEngine returns an engine.
func NewEngine() *Engine { return &Engine{} }

// Effective is the effective policy of one kind on one path.
type Effective struct {
	Kind   *policykind.Kind
	Path   hierarchy.Path
	Layers []merge.Layer
	*merge.Result
}

// Level returns the level of the path at which a policy is attached, the
// highest if it is at several.
func (e *Effective) Level(p *merge.Policy) hierarchy.Level {
	level := hierarchy.LevelBackend
	for _, l := range e.Layers {
		if l.Policy == p {
			level = min(level, hierarchy.Level(l.Level))
		}
	}
	return level
}

// Ref names a policy of the effective policy's kind.
func (e *Effective) Ref(p *merge.Policy) api.Ref {
	return api.Ref{Group: e.Kind.Group, Kind: e.Kind.Kind, Namespace: p.Namespace, Name: p.Name}
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

// Spend implements merge.Meter.
func (b *Budget) Spend(cost uint64) error {
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

// Walk calls visit for every path of the scope and every policy kind of the
// view that has a policy on it; with empty, also where no policy is. It stops
// at the first error, which is the budget's or visit's.
func (e *Engine) Walk(v *store.View, s Scope, empty bool, b *Budget, visit func(*Effective) error) error {
	w := walk{engine: e, view: v, kinds: v.Kinds(), empty: empty, budget: b, visit: visit}
	w.on = make([]above, len(w.kinds))
	for br := range s.branches(v) {
		if err := w.branch(br); err != nil {
			return err
		}
	}
	return nil
}

type walk struct {
	engine *Engine
	view   *store.View
	kinds  []*policykind.Kind
	on     []above // by kind, for the branch at hand
	// labels of the namespace of the route before: routes come by namespace
	namespace string
	labels    labels.Set
	empty     bool
	budget    *Budget
	visit     func(*Effective) error
}

func (w *walk) branch(b branch) error {
	class := (&hierarchy.Class{Name: b.gateway.Class}).Ref()
	clear(w.on)
	attachments(w.view, w.kinds, class, func(k int, a attachment) { w.on[k].class = append(w.on[k].class, a) })
	attachments(w.view, w.kinds, b.gateway.Ref(), func(k int, a attachment) { w.on[k].gateway = append(w.on[k].gateway, a) })
	for r := range b.routes {
		if err := w.budget.alive(); err != nil {
			return err
		}
		if err := w.route(b.gateway, r); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) route(g *hierarchy.Gateway, r *hierarchy.Route) error {
	if w.labels == nil || w.namespace != r.Namespace {
		w.namespace, w.labels = r.Namespace, w.view.NamespaceLabels(r.Namespace)
	}
	listeners := hierarchy.Attached(g, r, w.labels)
	if len(listeners) == 0 {
		return nil
	}
	for i := range w.on {
		w.on[i].route = w.on[i].route[:0]
	}
	attachments(w.view, w.kinds, r.Ref(), func(k int, a attachment) { w.on[k].route = append(w.on[k].route, a) })
	for i, k := range w.kinds {
		for _, l := range listeners {
			for rule := range r.Rules {
				p := hierarchy.Path{Gateway: g, Listener: l, Route: r, Rule: rule}
				if err := w.path(&w.on[i], k, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *walk) path(on *above, k *policykind.Kind, p hierarchy.Path) error {
	s := on.stack(p)
	if len(s.layers) == 0 && !w.empty {
		return nil
	}
	result, err := w.engine.fold(s, w.budget)
	if err != nil {
		return err
	}
	return w.visit(&Effective{Kind: k, Path: p, Layers: s.layers, Result: result})
}

func (e *Engine) fold(s stack, b *Budget) (*merge.Result, error) {
	at := memoKey(s)
	if r, ok := e.memo.get(at); ok {
		return r, nil
	}
	r, err := merge.Fold(s.layers, b)
	if err != nil {
		return nil, err
	}
	e.memo.put(at, r)
	return r, nil
}
