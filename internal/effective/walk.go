package effective

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// walk visits paths root by root, and under each root route by route.
type walk struct {
	engine *Engine
	view   *snapshot.View
	kinds  []kindWalk
	budget *Budget
	visit  func(*Effective) error

	namespaceLevel bool // of the route's namespace, in some kind
	// root is the current root, listeners are all listeners of it, accepting those
	// that accept the current route.
	root      root
	listeners []gateway.ListenerMatch
	accepting []gateway.ListenerMatch
	// namespace of the previous route and its labels: routes come by namespace.
	namespace string
	labels    labels.Set
	// shared caches the policies on objects that many paths share.
	shared map[api.Ref][][]attachment
	// targeting looks up the policies on routes, which come in the order of names.
	targeting *snapshot.Targeting
	// keepsRoutes is set if routes come in any order, and again: shared has them, too.
	keepsRoutes bool
	// whatIf is set if the view may never exist. memoized is then the weight of the
	// results that were added to the memo, and localMemo has those beyond
	// maxComparisonWeight.
	whatIf    bool
	memoized  int
	localMemo map[string]*folded
	binder    *binder // a comparison has one for both of its walks

	// reuseResults is set if visit does not keep what it is called with.
	reuseResults bool

	key       []byte      // buffer
	pool      []Effective // allocated and unused
	allocated int
}

// kindWalk visits the paths of one kind under the current root and route.
type kindWalk struct {
	stackBuilder

	empty     bool    // paths without a policy are visited
	countOnly *int    // if not nil, paths are counted and not visited: no policy can be on any
	last      *folded // of the previous path
}

// stackBuilder builds the stacks of paths of one kind under the current root and route.
type stackBuilder struct {
	*walk

	index      int // in the kinds of the walk
	kind       *policykind.Kind
	shape      *shape
	sameTarget merge.SameTarget
	// on are the policies on the object at each level of the current paths; those on
	// listener sets and backends are looked up for each path.
	on       [gateway.LevelRoute + 1][]attachment
	waypoint *gateway.Gateway // of the service that is the root
	unread   unread           // at the root
	sharing  sharing
	stack    stack // of the current path
	// alternative walks the kind whose policies with the same rules count if they are closer,
	// nil if there is none.
	alternative *walk
}

func newWalk(e *Engine, v *snapshot.View, kinds []*policykind.Kind, b *Budget, visit func(*Effective) error) *walk {
	w := walkOf(e, v, kinds, b, visit)
	for i, k := range kinds {
		if o := v.Alternative(k); o != nil {
			w.kinds[i].alternative = walkOf(e, v, []*policykind.Kind{o}, b, nil)
		}
	}
	return w
}

// walkOf returns a walk without alternatives.
func walkOf(e *Engine, v *snapshot.View, kinds []*policykind.Kind, b *Budget, visit func(*Effective) error) *walk {
	w := &walk{engine: e, view: v, budget: b, visit: visit, targeting: v.Targeting(), binder: new(binder)}
	w.kinds = make([]kindWalk, len(kinds))
	for i, k := range kinds {
		w.kinds[i].stackBuilder = stackBuilder{walk: w, index: i, kind: k, shape: e.shape(k), sameTarget: k.MergeSameTarget(), sharing: sharing{view: v, kind: k}}
		w.namespaceLevel = w.namespaceLevel || w.kinds[i].shape.levels.has(gateway.LevelRouteNamespace)
	}
	return w
}

// kinds returns the kinds of the view that have paths to visit: those with a policy,
// and those whose empty paths are visited.
func (s Scope) kinds(v *snapshot.View, empty bool) []*policykind.Kind {
	populated := v.Populated()
	if s.Kinds == nil && len(s.Empty) == 0 && !empty {
		return populated
	}
	return slices.DeleteFunc(slices.Clone(v.Kinds()), func(k *policykind.Kind) bool {
		ref := k.Ref()
		return s.Kinds != nil && !slices.Contains(s.Kinds, ref) ||
			!empty && !slices.Contains(s.Empty, ref) && !slices.Contains(populated, k)
	})
}

// enterRoot makes a root the current one, and looks up the policies on it and above it.
func (w *walk) enterRoot(r root, listeners []gateway.ListenerMatch) {
	w.root, w.listeners = r, listeners
	for i := range w.kinds {
		k := &w.kinds[i]
		route := k.on[gateway.LevelRoute][:0]
		k.on, k.waypoint, k.unread = [gateway.LevelRoute + 1][]attachment{gateway.LevelRoute: route}, nil, unread{}
		if k.alternative != nil {
			k.alternative.enterRoot(r, listeners)
		}
	}
	w.enter(gateway.LevelMesh, api.Ref{Kind: gateway.KindMesh}, w.kinds)
	if r.service != nil {
		w.enterService(r.service)
	}
	if r.gateway != nil {
		w.enterGateway(r.gateway, w.kinds)
	}
}

// enter looks up the policies of some kinds on the object at a level of the current paths.
func (w *walk) enter(l gateway.Level, object api.Ref, kinds []kindWalk) {
	on := w.attachedTo(object)
	for i := range kinds {
		kinds[i].on[l] = kinds[i].own(on)
	}
}

// enterGateway sets the policies of some kinds on the root, or on the waypoint of the service
// that is the root, and above it.
func (w *walk) enterGateway(g *gateway.Gateway, kinds []kindWalk) {
	w.enter(gateway.LevelGatewayClass, (&gateway.Class{Name: g.Class}).Ref(), kinds)
	w.enter(gateway.LevelGatewayNamespace, (&gateway.Namespace{Name: g.Namespace}).Ref(), kinds)
	w.enter(gateway.LevelGateway, g.Ref(), kinds)
	controller := controllerOf(w.view, g)
	for i := range kinds {
		kinds[i].unread.at(w.view, kinds[i].kind, g, controller)
	}
}

// enterService sets the policies on a service, above it and on its waypoint.
func (w *walk) enterService(s *gateway.Service) {
	w.enter(gateway.LevelServiceNamespace, (&gateway.Namespace{Name: s.Namespace}).Ref(), w.kinds)
	w.enter(gateway.LevelService, s.Ref(), w.kinds)
	for i := range w.kinds {
		k := &w.kinds[i]
		if k.kind.Waypoints == nil {
			continue
		}
		if k.waypoint, k.unread.noWaypoint = waypointOf(w.view, k.kind.Waypoints, s); k.waypoint != nil {
			w.enterGateway(k.waypoint, w.kinds[i:i+1])
			k.unread.onService(k.kind, k.waypoint, s)
		} else {
			k.unread.levels = levelsOf(gateway.LevelService, gateway.LevelServicePort)
		}
	}
}

func listenerPath(d gateway.ListenerMatch) gateway.Path {
	return gateway.Path{Gateway: d.Gateway, Set: d.Set, Listener: d.Listener, Rule: -1}
}

// enterRoute makes a route the current one, and looks up the policies on it.
func (w *walk) enterRoute(r *gateway.Route) {
	for i := range w.kinds {
		if o := w.kinds[i].alternative; o != nil {
			o.keepsRoutes = w.keepsRoutes
			o.enterRoute(r)
		}
	}
	if w.namespaceLevel {
		w.enter(gateway.LevelRouteNamespace, (&gateway.Namespace{Name: r.Namespace}).Ref(), w.kinds)
	}
	if w.keepsRoutes {
		w.enter(gateway.LevelRoute, r.Ref(), w.kinds)
		return
	}
	for i := range w.kinds {
		w.kinds[i].on[gateway.LevelRoute] = w.kinds[i].on[gateway.LevelRoute][:0]
	}
	w.targeting.On(r.Ref(), func(p *policykind.Policy, t policykind.Target) bool {
		if kind := w.kindOf(p, t); kind >= 0 {
			on := &w.kinds[kind].on[gateway.LevelRoute]
			*on = append(*on, attachment{p, t})
		}
		return true
	})
	for i := range w.kinds {
		on := &w.kinds[i].on[gateway.LevelRoute]
		*on = w.kinds[i].sharing.counted(*on)
	}
}

// belowRoute visits the paths of the kind from a route on.
func (k *kindWalk) belowRoute(end gateway.Level, p gateway.Path) error {
	if end == gateway.LevelRoute {
		return k.path(p)
	}
	for rule := range p.Route.Rules {
		p.Rule = rule
		if end == gateway.LevelRule {
			if err := k.path(p); err != nil {
				return err
			}
			continue
		}
		if err := k.backendPaths(p); err != nil {
			return err
		}
	}
	return nil
}

func (k *kindWalk) backendPaths(p gateway.Path) error {
	rule := &p.Route.Rules[p.Rule]
	if len(rule.Backends) == 0 && k.kind.ShortPaths {
		return k.path(p)
	}
	for i := range rule.Backends {
		p.Backend = &rule.Backends[i]
		if !reaches(k.view, p.Route, p.Backend.Object) {
			continue
		}
		if err := k.path(p); err != nil {
			return err
		}
	}
	return nil
}

// virtualPath visits the path of a virtual target, or of a backend that policies refer to.
func (w *walk) virtualPath(ref api.Ref) error {
	var ports []int32
	for p := range w.view.Naming(ref) {
		for _, b := range p.Backends {
			if b.Object == ref && p.Invalid == nil {
				ports = append(ports, b.Port)
			}
		}
	}
	namespace, exists := w.attachedTo((&gateway.Namespace{Name: ref.Namespace}).Ref()), w.view.Get(ref) != nil
	on := w.findAttached(ref)
	for i := range w.kinds {
		k := &w.kinds[i]
		all := k.own(on)
		if Missing(w.view, k.kind, ref) {
			continue
		}
		if len(all) > 0 || exists && k.kind.ReadsObjects(ref.PolicyKind()) { // those on a virtual namespace are on all in it
			all = slices.Concat(k.own(namespace), all)
		}
		k.unread = unread{} // that of the last root; no root follows
		path := gateway.Path{Virtual: &ref, Rule: -1}
		s, all := k.stack.reset(&path), k.here(all)
		for _, a := range all {
			if a.target.Virtual {
				s.add(&k.stackBuilder, a.policy, gateway.LevelBackend)
			}
		}
		if len(ports) > 0 && len(s.layers) == 0 {
			k.addSections(all, gateway.LevelBackend, gateway.LevelBackendPort, func(t *policykind.Target) bool {
				return slices.ContainsFunc(ports, func(port int32) bool { return onPort(k.view, k.unread.numbers, t, ref, port) })
			})
		}
		k.exclude()
		if len(s.layers)+len(s.ignored) == 0 {
			continue
		}
		if err := k.foldPath(path, nil); err != nil {
			return err
		}
	}
	return nil
}

// path visits one path of the kind, or one for each item of the list whose fields it
// controls.
func (k *kindWalk) path(p gateway.Path) error {
	if k.countOnly != nil {
		if members, controlled := membersOf(k.kind, p); controlled {
			*k.countOnly += len(members)
		} else {
			*k.countOnly++
		}
		return nil
	}
	p = k.shape.markNamespaces(p)
	k.buildStack(&p)
	if len(k.stack.layers) == 0 && len(k.stack.ignored) == 0 && !k.empty {
		return nil
	}
	members, controlled := membersOf(k.kind, p)
	if !controlled {
		return k.foldPath(p, nil)
	}
	policies := len(k.stack.layers)
	for i := range members {
		p.Member = members[i].name
		if err := k.foldPath(p, &members[i]); err != nil {
			return err
		}
		k.stack.layers = k.stack.layers[:policies]
	}
	return nil
}

// foldPath folds the stack of a path, on top of the fields of a member, and visits the
// path.
func (k *kindWalk) foldPath(p gateway.Path, m *Member) error {
	onFields := m != nil && len(m.fields.Blocks) > 0
	if len(k.stack.layers) > 0 {
		k.stack.decideFromBelow(k.kind, onFields)
	}
	e := k.effective()
	*e = Effective{Kind: k.kind, Path: p, Member: m, binder: k.binder}
	if k.unread.levels != 0 || len(k.stack.ignored) > 0 {
		e.Unread, e.Ignored, e.Excluded = k.unread.reason(&k.stackBuilder, &p), slices.Clone(k.stack.ignored), k.stack.several
	}
	if onFields {
		e.Object = &m.fields.Policy
		k.stack.layers = append(k.stack.layers, layer{merge.Layer{Policy: e.Object, Level: int(gateway.LevelObject)}, &m.fields})
	}
	k.budget.startPath(e)
	f, err := k.fold(e)
	if err != nil {
		return err
	}
	e.folded, e.Layers, e.Result, e.Outcomes = f, f.layers, f.Result, f.Outcomes
	if e.Object != nil {
		e.Outcomes = f.Outcomes[:len(f.Outcomes)-1] // the lowest
	}
	return k.visit(e)
}

// fold returns the fold of the stack, from the memo if it has it.
func (k *kindWalk) fold(e *Effective) (*folded, error) {
	if k.last != nil && k.stack.matches(k.last) {
		return k.last, nil
	}
	k.key = appendMemoKey(k.key[:0], &k.stack)
	if f := k.lookup(); f != nil {
		k.last = f
		return f, nil
	}
	f := &folded{layers: make([]merge.Layer, len(k.stack.layers))}
	for i, l := range k.stack.layers {
		f.layers[i], f.size, f.binds = l.Layer, f.size+l.policy.Size, f.binds || l.policy.Binds
	}
	e.Layers = f.layers // also if the fold fails
	var err error
	if f.Result, err = merge.Fold(f.layers, k.budget); err != nil {
		return nil, err
	}
	k.last = f
	k.memoize(f)
	return f, nil
}

// lookup returns the fold of the stack with the current key, nil if no memo has it.
func (w *walk) lookup() *folded {
	if f := w.localMemo[string(w.key)]; f != nil {
		return f
	}
	return w.engine.memo.get(w.key)
}

// memoize adds the fold of the stack with the current key to the engine's memo, or
// once the weight of a comparison exceeds maxComparisonWeight, to that of the walk.
func (w *walk) memoize(f *folded) {
	if w.whatIf {
		w.memoized += f.weigh()
	}
	if w.memoized <= maxComparisonWeight {
		w.engine.memo.put(w.key, f)
		return
	}
	if w.localMemo == nil || len(w.localMemo) >= maxLocalMemo {
		w.localMemo = make(map[string]*folded)
	}
	w.localMemo[string(w.key)] = f
}

// effective returns a new Effective. It allocates several at once, since most have the
// same lifetime.
func (w *walk) effective() *Effective {
	if len(w.pool) == 0 {
		w.pool = make([]Effective, min(max(w.allocated, 4), 64))
		w.allocated += len(w.pool)
	}
	e := &w.pool[0]
	if !w.reuseResults {
		w.pool = w.pool[1:]
	}
	return e
}
