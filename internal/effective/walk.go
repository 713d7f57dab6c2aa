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

// Walk calls visit for every path of the scope and every policy kind of the
// view that has a policy on it; with empty, also where no policy is. It stops
// at the first error, which is the budget's or visit's.
func (e *Engine) Walk(v *snapshot.View, s Scope, empty bool, b *Budget, visit func(*Effective) error) error {
	w := newWalk(e, v, s.kinds(v, empty), b, visit)
	for i := range w.by {
		w.by[i].empty = empty || slices.Contains(s.Empty, w.by[i].kind.Ref())
	}
	return w.all(s.plan(v))
}

// all visits all paths of a plan.
func (w *walk) all(p *plan) error {
	for br := range p.branches() {
		if err := w.branch(p, br); err != nil {
			return err
		}
	}
	for _, ref := range p.virtual.list {
		if err := w.virtualPath(ref); err != nil {
			return err
		}
	}
	return nil
}

// walk is a way along paths, one root after the other, and on it one route after
// the other.
type walk struct {
	engine *Engine
	view   *snapshot.View
	by     []kindWalk
	budget *Budget
	visit  func(*Effective) error

	namespaceLevel bool // of the route's namespace, in some kind
	// root at hand and its doors, all of them: a route may be on any; open are
	// those that the route at hand is on.
	root  root
	doors []gateway.ListenerMatch
	open  []gateway.ListenerMatch
	// labels of the namespace of the route before: routes come by namespace
	namespace string
	labels    labels.Set
	// shared caches what is attached to objects that many paths share.
	shared map[api.Ref][][]attachment
	// targeting is asked for routes, which come in the order of their names.
	targeting *snapshot.Targeting
	// whatIf tells that the view may never come to be, put what was remembered
	// for it.
	whatIf bool
	put    int
	own    map[string]*folded // what was not put there

	// passing tells that nobody holds on to what is visited.
	passing bool

	key   []byte      // used again and again
	fresh []Effective // made and not used yet
	made  int
}

// kindWalk is a kind on the root and route at hand.
type kindWalk struct {
	kind  *policykind.Kind
	view  *snapshot.View
	shape *shape
	meet  merge.Meet
	empty bool // paths without a policy are visited
	bare  *int // counts the paths, which are not visited: no policy can be on any
	on    above
	stack stack   // of the path at hand
	last  *folded // of the one before
}

func newWalk(e *Engine, v *snapshot.View, kinds []*policykind.Kind, b *Budget, visit func(*Effective) error) *walk {
	w := &walk{engine: e, view: v, budget: b, visit: visit, targeting: v.Targeting()}
	w.by = make([]kindWalk, len(kinds))
	for i, k := range kinds {
		w.by[i] = kindWalk{kind: k, view: v, shape: e.shape(k), meet: k.Meet()}
		w.namespaceLevel = w.namespaceLevel || w.by[i].shape.has[gateway.LevelRouteNamespace]
	}
	return w
}

// kinds returns the kinds of the view that have paths to visit: those with a
// policy somewhere, and those whose empty paths are meant.
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

// on returns what is attached to an object that many paths share, by kind; nil
// where nothing is.
func (w *walk) on(object api.Ref) [][]attachment {
	all, ok := w.shared[object]
	if !ok {
		if w.shared == nil {
			w.shared = make(map[api.Ref][][]attachment)
		}
		all = w.attached(object)
		w.shared[object] = all
	}
	return all
}

// of returns what is attached by a kind.
func of(all [][]attachment, kind int) []attachment {
	if all == nil {
		return nil
	}
	return all[kind]
}

// enterRoot looks up what is attached to a root, and above it.
func (w *walk) enterRoot(r root, doors []gateway.ListenerMatch) {
	w.root, w.doors = r, doors
	mesh := w.on(api.Ref{Kind: gateway.KindMesh})
	for i := range w.by {
		w.by[i].on = above{mesh: of(mesh, i), route: w.by[i].on.route[:0]}
	}
	if s := r.service; s != nil {
		namespace, service := w.on((&gateway.Namespace{Name: s.Namespace}).Ref()), w.on(s.Ref())
		for i := range w.by {
			w.by[i].on.serviceNamespace, w.by[i].on.service = of(namespace, i), of(service, i)
		}
	}
	if g := r.gateway; g != nil {
		class, namespace, gw := w.on((&gateway.Class{Name: g.Class}).Ref()), w.on((&gateway.Namespace{Name: g.Namespace}).Ref()), w.on(g.Ref())
		for i := range w.by {
			on := &w.by[i].on
			on.class, on.gatewayNamespace, on.gateway = of(class, i), of(namespace, i), of(gw, i)
		}
	}
}

func (w *walk) branch(p *plan, b branch) error {
	doors := b.doors
	if !b.whole && b.gateway != nil {
		doors = p.doors(b.root)
	}
	w.enterRoot(b.root, doors)
	if err := w.rootPaths(b.doors, b.whole); err != nil {
		return err
	}
	for r := range b.routes {
		if err := w.throughRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// rootPaths visits the paths that end at the root, if it is walked as a whole,
// or at one of the doors.
func (w *walk) rootPaths(doors []gateway.ListenerMatch, whole bool) error {
	if w.root.service != nil {
		return w.ownPaths(whole)
	}
	return w.gatewayPaths(doors, whole)
}

// throughRoute visits the paths from the root through a route.
func (w *walk) throughRoute(r *gateway.Route) error {
	if err := w.budget.Alive(); err != nil {
		return err
	}
	if w.root.service != nil {
		return w.meshRoute(r)
	}
	return w.routeOn(r)
}

// gatewayPaths visits the paths that end at the gateway or at a listener.
func (w *walk) gatewayPaths(doors []gateway.ListenerMatch, whole bool) error {
	for i := range w.by {
		k := &w.by[i]
		if !k.shape.gateway {
			continue
		}
		switch k.shape.gatewayEnd {
		case gateway.LevelGateway:
			if !whole {
				continue
			}
			if err := w.path(i, gateway.Path{Gateway: w.root.gateway, Rule: -1}); err != nil {
				return err
			}
		case gateway.LevelListener:
			for _, d := range doors {
				if err := w.path(i, doorPath(d)); err != nil {
					return err
				}
			}
		default:
		}
	}
	return nil
}

func doorPath(d gateway.ListenerMatch) gateway.Path {
	return gateway.Path{Gateway: d.Gateway, Set: d.Set, Listener: d.Listener, Rule: -1}
}

// enter looks up what is attached to a route.
func (w *walk) enter(r *gateway.Route) {
	for i := range w.by {
		w.by[i].on.route = w.by[i].on.route[:0]
	}
	w.targeting.On(r.Ref(), func(p *policykind.Policy, t policykind.Target) bool {
		if kind := w.kindOf(p, t); kind >= 0 {
			on := &w.by[kind].on
			on.route = append(on.route, attachment{p, t})
		}
		return true
	})
	for i := range w.by {
		w.by[i].on.route = settled(w.by[i].kind, w.by[i].on.route)
	}
	if w.namespaceLevel {
		namespace := w.on((&gateway.Namespace{Name: r.Namespace}).Ref())
		for i := range w.by {
			w.by[i].on.routeNamespace = of(namespace, i)
		}
	}
}

func (w *walk) routeOn(r *gateway.Route) error {
	if w.labels == nil || w.namespace != r.Namespace {
		w.namespace, w.labels = r.Namespace, w.view.NamespaceLabels(r.Namespace)
	}
	w.open = w.open[:0]
	for _, d := range w.doors {
		if d.Accepts(r, w.labels) {
			w.open = append(w.open, d)
		}
	}
	if len(w.open) == 0 {
		return nil
	}
	w.enter(r)
	for i := range w.by {
		k := &w.by[i]
		if !k.shape.gateway || k.shape.gatewayEnd < gateway.LevelRoute || !k.shape.through(r.Kind) {
			continue
		}
		for _, d := range w.open {
			p := doorPath(d)
			p.Route = r
			if err := w.below(i, k.shape.gatewayEnd, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// below visits the paths of a kind that go on from a route.
func (w *walk) below(kind int, end gateway.Level, p gateway.Path) error {
	if end == gateway.LevelRoute {
		return w.path(kind, p)
	}
	for rule := range p.Route.Rules {
		p.Rule = rule
		if end == gateway.LevelRule {
			if err := w.path(kind, p); err != nil {
				return err
			}
			continue
		}
		if err := w.toBackends(kind, p); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) toBackends(kind int, p gateway.Path) error {
	rule := &p.Route.Rules[p.Rule]
	if len(rule.Backends) == 0 && w.by[kind].kind.ShortPaths {
		return w.path(kind, p)
	}
	for i := range rule.Backends {
		p.Backend = &rule.Backends[i]
		if !reaches(w.view, p.Route, p.Backend.Object) {
			continue
		}
		if err := w.path(kind, p); err != nil {
			return err
		}
	}
	return nil
}

// reaches reports whether a route may send traffic to a backend: in another
// namespace, only by a ReferenceGrant.
func reaches(v *snapshot.View, r *gateway.Route, backend api.Ref) bool {
	return backend.Namespace == r.Namespace || v.Granted(r.Ref().PolicyKind(), r.Namespace, backend)
}

// virtualPath visits the path of a target that exists nowhere.
func (w *walk) virtualPath(ref api.Ref) error {
	for i, all := range w.attached(ref) {
		s := w.by[i].stack.reset("")
		for _, a := range all {
			if a.target.Virtual {
				s.add(&w.by[i], a.policy, gateway.LevelBackend)
			}
		}
		if len(s.layers) == 0 {
			continue
		}
		if err := w.folded(i, gateway.Path{Virtual: &ref, Rule: -1}, nil); err != nil {
			return err
		}
	}
	return nil
}

// path visits one path of a kind, or one for each item of the list whose
// fields the kind controls.
func (w *walk) path(kind int, p gateway.Path) error {
	k := &w.by[kind]
	if k.bare != nil {
		if members, controlled := membersOf(k.kind, p); controlled {
			*k.bare += len(members)
		} else {
			*k.bare++
		}
		return nil
	}
	p = k.shape.namespaces(p)
	var set, backend []attachment
	if p.Set != nil {
		set = of(w.on(p.Set.Ref()), kind)
	}
	if p.Backend != nil && !sameService(p) {
		backend = of(w.on(p.Backend.Object), kind)
	}
	k.pile(&p, set, backend)
	if len(k.stack.layers) == 0 && !k.empty {
		return nil
	}
	members, controlled := membersOf(k.kind, p)
	if !controlled {
		return w.folded(kind, p, nil)
	}
	policies := len(k.stack.layers)
	for i := range members {
		p.Member = members[i].name
		if err := w.folded(kind, p, &members[i]); err != nil {
			return err
		}
		k.stack.layers, k.stack.versions = k.stack.layers[:policies], k.stack.versions[:policies]
	}
	return nil
}

// folded folds the stack of a path, on top of the fields of a member, and visits.
func (w *walk) folded(kind int, p gateway.Path, m *member) error {
	k := &w.by[kind]
	if len(k.stack.layers) > 0 {
		k.stack.dictate(k.kind, p.Route)
	}
	e := w.effective()
	*e = Effective{Kind: k.kind, Path: p, member: m}
	if m != nil && len(m.fields.Blocks) > 0 {
		e.object = &m.fields
		k.stack.layers = append(k.stack.layers, merge.Layer{Policy: e.object, Level: int(gateway.LevelObject)})
		k.stack.versions = append(k.stack.versions, m.version)
	}
	e.Layers = k.stack.layers
	w.budget.on(e)
	f, err := w.fold(k)
	if err != nil {
		return err
	}
	e.folded, e.Layers, e.Result, e.Outcomes = f, f.layers, f.Result, f.Outcomes
	if e.object != nil {
		e.Outcomes = f.Outcomes[:len(f.Outcomes)-1] // the lowest
	}
	return w.visit(e)
}

// fold folds the stack of a kind, or remembers what came of it.
func (w *walk) fold(k *kindWalk) (*folded, error) {
	if k.last != nil && k.stack.is(k.last) {
		return k.last, nil
	}
	w.key = appendMemoKey(w.key[:0], &k.stack)
	if f := w.remembered(); f != nil {
		k.last = f
		return f, nil
	}
	f := &folded{layers: slices.Clone(k.stack.layers)}
	for _, p := range k.stack.policies {
		f.size += p.Size
	}
	f.binds = slices.ContainsFunc(k.stack.policies, func(p *policykind.Policy) bool { return p.Binds })
	var err error
	if f.Result, err = merge.Fold(f.layers, w.budget); err != nil {
		return nil, err
	}
	k.last = f
	w.remember(f)
	return f, nil
}

// remembered returns what came of the stack whose key is at hand, nil if nobody
// remembers.
func (w *walk) remembered() *folded {
	if f := w.own[string(w.key)]; f != nil {
		return f
	}
	return w.engine.memo.get(w.key)
}

// remember keeps what came of the stack whose key is at hand: for everybody, or
// beyond what one comparison may put there for this walk alone.
func (w *walk) remember(f *folded) {
	if w.whatIf {
		w.put += f.weigh()
	}
	if w.put <= mostPut {
		w.engine.memo.put(w.key, f)
		return
	}
	if w.own == nil || len(w.own) >= mostOwn {
		w.own = make(map[string]*folded)
	}
	w.own[string(w.key)] = f
}

// mostOwn is how many folds a walk keeps for itself: those of paths close by.
const mostOwn = 256

// effective returns a new effective policy, out of a number that were made at
// once: most live and die together.
func (w *walk) effective() *Effective {
	if len(w.fresh) == 0 {
		w.fresh = make([]Effective, min(max(w.made, 4), 64))
		w.made += len(w.fresh)
	}
	e := &w.fresh[0]
	if !w.passing {
		w.fresh = w.fresh[1:]
	}
	return e
}

// sameService reports whether the path ends at the service that it starts at,
// as a mesh's route to its own parent does. What targets the service then
// stands at its root alone, above the route.
func sameService(p gateway.Path) bool {
	return p.Service != nil && p.Backend.Object == p.Service.Ref()
}
