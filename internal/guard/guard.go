package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Operation is what a write does.
type Operation string

// The operations, as admission names them.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Change is a write to be judged.
type Change struct {
	Operation Operation
	// Before is the object as it is stored, nil on a create; After as it would
	// be, nil on a delete.
	Before, After snapshot.Object
	// User who writes, nil where nobody is known.
	User *authenticationv1.UserInfo
	// Owner is an owner that the write adds to the object, "" for none: the
	// object will be deleted with it.
	Owner string
	// GarbageCollected tells that the garbage collector deletes the object.
	GarbageCollected bool
	// Acknowledged is the object's annotation of that name.
	Acknowledged string
}

// Object returns the object as it would be, or the one that is deleted.
func (c Change) Object() snapshot.Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// pack packs a policy that may be on very many paths, where its values are
// compared with those in the view, which are packed.
func (c *Change) pack(v *snapshot.View) {
	if _, few := effective.RoutesOnly(objects(*c)...); few {
		return
	}
	if p, ok := c.Before.(*policykind.Policy); ok && v.Get(p.Ref()) != c.Before {
		c.Before = p.Pack()
	}
	if p, ok := c.After.(*policykind.Policy); ok {
		c.After = p.Pack()
	}
}

// apply returns the views before and after the change. A namespace goes with
// all that is in it.
func (c Change) apply(v *snapshot.View) (before, after *snapshot.View) {
	before = v // but the request knows better than a cache
	switch {
	case c.Before == nil && v.Get(c.After.Ref()) != nil:
		before = v.With(snapshot.Delete(c.After.Ref()))
	case c.Before != nil && !held(v, c.Before):
		before = v.With(snapshot.Put(c.Before))
	}
	if n, ok := c.Before.(*gateway.Namespace); ok && c.After == nil {
		return before, before.With(append(before.AllIn(n.Name), snapshot.Delete(n.Ref()))...)
	}
	if c.After == nil {
		return before, before.With(snapshot.Delete(c.Before.Ref()))
	}
	return before, before.With(snapshot.Put(c.After))
}

// held reports whether the view has the very policy or route that the request
// says is stored. Its own copy is then the better one: what was folded with it
// is in the memo.
func held(v *snapshot.View, o snapshot.Object) bool {
	switch o := o.(type) {
	case *policykind.Policy:
		have, ok := v.Get(o.Ref()).(*policykind.Policy)
		return ok && (have == o || have.Same(o))
	case *gateway.Route:
		have, ok := v.Get(o.Ref()).(*gateway.Route)
		return ok && (have == o || have.Same(o))
	default:
		return false
	}
}

// Live reads an object that the cache does not have (yet). It returns nil
// where there is none.
type Live func(ctx context.Context, ref api.Ref) (snapshot.Object, error)

// Guard judges changes. It is safe for concurrent use.
type Guard struct {
	Engine *effective.Engine
	// Live, if set, is asked once for a target that the view lacks.
	Live Live
	// Kinds, if set, is asked about the policy kinds where a PolicyProfile or a
	// CustomResourceDefinition is written.
	Kinds Kinds
	// Rights, if set, is asked who may remove overrides; else nobody may.
	Rights Rights
	// BlastRadius is the most paths whose effective policy one write may change
	// without having been acknowledged; 0 is no limit.
	BlastRadius int
	// ShowValues has messages show values of objects other than the one that is
	// written: the reader may read them all.
	ShowValues bool
	// Budget is what the conditions of one judgement may cost, in units of
	// CEL cost; 0 means DefaultBudget, and PathBudget more for each path.
	Budget uint64
}

// Kinds is what is asked about the policy kinds when what says how they are
// read is written.
type Kinds interface {
	// Profiles returns the kinds that have a profile.
	Profiles() []api.ProfileInForce
	// Schema returns the schema of a kind, nil if the kind is not defined.
	Schema(ctx context.Context, kind api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error)
	// Reread returns the view as it would be after a *policykind.Profile or a
	// *policykind.Definition is written: before is nil on a create, after on a
	// delete. Policies of kinds that are read in another way then are read
	// again; where nothing is, it returns v itself. The error is a
	// *policykind.DefinedError where the definition would be a second one of a kind.
	Reread(ctx context.Context, v *snapshot.View, before, after snapshot.Object) (*snapshot.View, error)
}

// Rights tells who may remove or change overrides: those allowed the verb
// override on the policy's resource in its namespace. It is safe for concurrent
// use.
type Rights interface {
	// MayOverride asks for a user. An error tells that nobody can say now.
	MayOverride(ctx context.Context, user *authenticationv1.UserInfo, policy api.Ref) (bool, error)
	// Check returns the command with which users can see whether they may.
	Check(policy api.Ref) string
}

// ErrRights tells that nobody could say whether a user may remove an override.
var ErrRights = errors.New("whether the user may remove overrides cannot be found out")

// DefaultBudget of a judgement: about a second of evaluating conditions.
const DefaultBudget = 1_500_000

// PathBudget is what each path adds to the budget: a condition at its limit,
// evaluated twice. So a condition that is on very many paths is limited by time,
// and not because there are many.
const PathBudget = 2 * cel.Limit

// Evaluate judges one change on top of a view. observe, if not nil, is shown
// every touched path whose effective policy differs.
//
// A change that would cost too much to judge, or longer than ctx lasts, is
// denied with the reason TooMuch. The errors are those of Live and Kinds, ErrRights,
// and an *UnseenError.
func (g *Guard) Evaluate(ctx context.Context, v *snapshot.View, c Change, observe func(effective.Pair)) (*Decision, error) {
	j := g.judge(ctx, v)
	j.change, j.observe = c, observe
	err := j.run(ctx)
	if tooMuch, ok := errors.AsType[*effective.TooMuchError](err); ok {
		j.cut = true
		j.found.add(tooMuchFinding(c, tooMuch, err))
	} else if err != nil {
		return nil, err
	}
	if err := j.bySystem(ctx); err != nil {
		return nil, err
	}
	return j.judgement(), nil
}

func (g *Guard) judge(ctx context.Context, v *snapshot.View) *judge {
	j := &judge{Guard: g, before: v, after: v, others: tally{most: mostLosses}, budget: g.budget(ctx)}
	j.binding.is = j.binding.was.After()
	return j
}

func (g *Guard) budget(ctx context.Context) *effective.Budget {
	if g.Budget == 0 {
		return effective.NewBudget(ctx, DefaultBudget).Grow(PathBudget)
	}
	return effective.NewBudget(ctx, g.Budget)
}

func objects(c Change) []snapshot.Object {
	var out []snapshot.Object
	for _, o := range []snapshot.Object{c.Before, c.After} {
		if o != nil {
			out = append(out, o)
		}
	}
	return out
}

// mostLive is the most targets that a policy may have to have them looked for,
// and the most objects that are: Gateway API takes at most 16 targets.
const mostLive = 16

// withTargets adds to the view the targets of a policy that it lacks: they may
// have been created a moment ago.
func (g *Guard) withTargets(ctx context.Context, v *snapshot.View, c Change) (*snapshot.View, error) {
	p, ok := c.After.(*policykind.Policy)
	if !ok || g.Live == nil || p.Invalid != nil || len(p.Targets) > mostLive {
		return v, nil
	}
	asked := make(map[api.Ref]bool)
	look := func(ref api.Ref) error {
		if asked[ref] || len(asked) == mostLive {
			return nil
		}
		asked[ref] = true
		o, err := g.Live(ctx, ref)
		if err != nil {
			return fmt.Errorf("look for %s: %w", ref, err)
		}
		if o != nil {
			v = v.With(snapshot.Put(o))
		}
		return nil
	}
	for _, t := range p.Targets {
		if t.Refused != "" || t.Selector != nil {
			continue
		}
		if !effective.Exists(v, t) {
			if err := look(t.Ref); err != nil {
				return nil, err
			}
		}
		for _, parent := range missingParents(v, t.Ref) {
			if err := look(parent); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// missingParents returns the parents of a route that a view lacks; none for
// objects that are no routes.
func missingParents(v *snapshot.View, ref api.Ref) []api.Ref {
	r, ok := v.Get(ref).(*gateway.Route)
	if !ok {
		return nil
	}
	var out []api.Ref
	for _, p := range r.Parents {
		if v.Get(p.Ref()) == nil {
			out = append(out, p.Ref())
		}
	}
	return out
}

// reachesBelow reports whether an object is one whose writes are told how many
// paths they change: everything but a policy on routes alone.
func reachesBelow(o snapshot.Object) bool {
	p, ok := o.(*policykind.Policy)
	if !ok {
		return true
	}
	return slices.ContainsFunc(p.Targets, func(t policykind.Target) bool { return !gateway.IsRoute(t.Ref.PolicyKind()) })
}
