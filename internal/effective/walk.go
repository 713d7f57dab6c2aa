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
	for i := range w.kinds {
		w.kinds[i].empty = empty || slices.Contains(s.Empty, w.kinds[i].kind.Ref())
	}
	return w.walkPlan(s.plan(v))
}

// all visits all paths of a plan.
func (w *walk) walkPlan(p *plan) error {
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
	kinds  []kindWalk
	budget *Budget
	visit  func(*Effective) error

	namespaceLevel bool // of the route's namespace, in some kind
	// root at hand and its doors, all of them: a route may be on any; open are
	// those that the route at hand is on.
	root      root
	listeners []gateway.ListenerMatch
	accepting []gateway.ListenerMatch
	// labels of the namespace of the route before: routes come by namespace
	namespace string
	labels    labels.Set
	// shared caches what is attached to objects that many paths share.
	shared map[api.Ref][][]attachment
	// targeting is asked for routes, which come in the order of their names.
	targeting *snapshot.Targeting
	// whatIf tells that the view may never come to be, put what was remembered
	// for it.
	whatIf    bool
	memoized  int
	localMemo map[string]*folded // what was not put there

	// passing tells that nobody holds on to what is visited.
	reuseResults bool

	key       []byte      // used again and again
	pool      []Effective // made and not used yet
	allocated int
}

// kindWalk is a kind on the root and route at hand.
type kindWalk struct {
	kind      *policykind.Kind
	view      *snapshot.View
	shape     *shape
	meet      merge.Meet
	empty     bool // paths without a policy are visited
	countOnly *int // counts the paths, which are not visited: no policy can be on any
	attached  attachments
	stack     stack   // of the path at hand
	last      *folded // of the one before
}

func newWalk(e *Engine, v *snapshot.View, kinds []*policykind.Kind, b *Budget, visit func(*Effective) error) *walk {
	w := &walk{engine: e, view: v, budget: b, visit: visit, targeting: v.Targeting()}
	w.kinds = make([]kindWalk, len(kinds))
	for i, k := range kinds {
		w.kinds[i] = kindWalk{kind: k, view: v, shape: e.shape(k), meet: k.Meet()}
		w.namespaceLevel = w.namespaceLevel || w.kinds[i].shape.levels[gateway.LevelRouteNamespace]
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
func (w *walk) attachedTo(object api.Ref) [][]attachment {
	all, ok := w.shared[object]
	if !ok {
		if w.shared == nil {
			w.shared = make(map[api.Ref][][]attachment)
		}
		all = w.findAttached(object)
		w.shared[object] = all
	}
	return all
}

// of returns what is attached by a kind.
func ofKind(all [][]attachment, kind int) []attachment {
	if all == nil {
		return nil
	}
	return all[kind]
}

// enterRoot looks up what is attached to a root, and above it.
func (w *walk) enterRoot(r root, listeners []gateway.ListenerMatch) {
	w.root, w.listeners = r, listeners
	mesh := w.attachedTo(api.Ref{Kind: gateway.KindMesh})
	for i := range w.kinds {
		w.kinds[i].attached = attachments{mesh: ofKind(mesh, i), route: w.kinds[i].attached.route[:0]}
	}
	if s := r.service; s != nil {
		namespace, service := w.attachedTo((&gateway.Namespace{Name: s.Namespace}).Ref()), w.attachedTo(s.Ref())
		for i := range w.kinds {
			w.kinds[i].attached.serviceNamespace, w.kinds[i].attached.service = ofKind(namespace, i), ofKind(service, i)
		}
	}
	if g := r.gateway; g != nil {
		class, namespace, gw := w.attachedTo((&gateway.Class{Name: g.Class}).Ref()), w.attachedTo((&gateway.Namespace{Name: g.Namespace}).Ref()), w.attachedTo(g.Ref())
		for i := range w.kinds {
			on := &w.kinds[i].attached
			on.class, on.gatewayNamespace, on.gateway = ofKind(class, i), ofKind(namespace, i), ofKind(gw, i)
		}
	}
}

func (w *walk) branch(p *plan, b branch) error {
	listeners := b.listeners
	if !b.whole && b.gateway != nil {
		listeners = p.listeners(b.root)
	}
	w.enterRoot(b.root, listeners)
	if err := w.rootPaths(b.listeners, b.whole); err != nil {
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
func (w *walk) rootPaths(listeners []gateway.ListenerMatch, whole bool) error {
	if w.root.service != nil {
		return w.servicePath(whole)
	}
	return w.gatewayPaths(listeners, whole)
}

// throughRoute visits the paths from the root through a route.
func (w *walk) throughRoute(r *gateway.Route) error {
	if err := w.budget.Alive(); err != nil {
		return err
	}
	if w.root.service != nil {
		return w.meshRoute(r)
	}
	return w.gatewayRoute(r)
}

// gatewayPaths visits the paths that end at the gateway or at a listener.
func (w *walk) gatewayPaths(listeners []gateway.ListenerMatch, whole bool) error {
	for i := range w.kinds {
		k := &w.kinds[i]
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
			for _, d := range listeners {
				if err := w.path(i, listenerPath(d)); err != nil {
					return err
				}
			}
		default:
		}
	}
	return nil
}

func listenerPath(d gateway.ListenerMatch) gateway.Path {
	return gateway.Path{Gateway: d.Gateway, Set: d.Set, Listener: d.Listener, Rule: -1}
}

// enter looks up what is attached to a route.
func (w *walk) enterRoute(r *gateway.Route) {
	for i := range w.kinds {
		w.kinds[i].attached.route = w.kinds[i].attached.route[:0]
	}
	w.targeting.On(r.Ref(), func(p *policykind.Policy, t policykind.Target) bool {
		if kind := w.kindOf(p, t); kind >= 0 {
			on := &w.kinds[kind].attached
			on.route = append(on.route, attachment{p, t})
		}
		return true
	})
	for i := range w.kinds {
		w.kinds[i].attached.route = acceptedOn(w.kinds[i].kind, w.kinds[i].attached.route)
	}
	if w.namespaceLevel {
		namespace := w.attachedTo((&gateway.Namespace{Name: r.Namespace}).Ref())
		for i := range w.kinds {
			w.kinds[i].attached.routeNamespace = ofKind(namespace, i)
		}
	}
}

func (w *walk) gatewayRoute(r *gateway.Route) error {
	if w.labels == nil || w.namespace != r.Namespace {
		w.namespace, w.labels = r.Namespace, w.view.NamespaceLabels(r.Namespace)
	}
	w.accepting = w.accepting[:0]
	for _, d := range w.listeners {
		if d.Accepts(r, w.labels) {
			w.accepting = append(w.accepting, d)
		}
	}
	if len(w.accepting) == 0 {
		return nil
	}
	w.enterRoute(r)
	for i := range w.kinds {
		k := &w.kinds[i]
		if !k.shape.gateway || k.shape.gatewayEnd < gateway.LevelRoute || !k.shape.includesRoute(r.Kind) {
			continue
		}
		for _, d := range w.accepting {
			p := listenerPath(d)
			p.Route = r
			if err := w.belowRoute(i, k.shape.gatewayEnd, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// below visits the paths of a kind that go on from a route.
func (w *walk) belowRoute(kind int, end gateway.Level, p gateway.Path) error {
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
		if err := w.backendPaths(kind, p); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) backendPaths(kind int, p gateway.Path) error {
	rule := &p.Route.Rules[p.Rule]
	if len(rule.Backends) == 0 && w.kinds[kind].kind.ShortPaths {
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
	for i, all := range w.findAttached(ref) {
		s := w.kinds[i].stack.reset("")
		for _, a := range all {
			if a.target.Virtual {
				s.add(&w.kinds[i], a.policy, gateway.LevelBackend)
			}
		}
		if len(s.layers) == 0 {
			continue
		}
		if err := w.foldPath(i, gateway.Path{Virtual: &ref, Rule: -1}, nil); err != nil {
			return err
		}
	}
	return nil
}

// path visits one path of a kind, or one for each item of the list whose
// fields the kind controls.
func (w *walk) path(kind int, p gateway.Path) error {
	k := &w.kinds[kind]
	if k.countOnly != nil {
		if members, controlled := membersOf(k.kind, p); controlled {
			*k.countOnly += len(members)
		} else {
			*k.countOnly++
		}
		return nil
	}
	p = k.shape.markNamespaces(p)
	var set, backend []attachment
	if p.Set != nil {
		set = ofKind(w.attachedTo(p.Set.Ref()), kind)
	}
	if p.Backend != nil && !sameService(p) {
		backend = ofKind(w.attachedTo(p.Backend.Object), kind)
	}
	k.buildStack(&p, set, backend)
	if len(k.stack.layers) == 0 && !k.empty {
		return nil
	}
	members, controlled := membersOf(k.kind, p)
	if !controlled {
		return w.foldPath(kind, p, nil)
	}
	policies := len(k.stack.layers)
	for i := range members {
		p.Member = members[i].name
		if err := w.foldPath(kind, p, &members[i]); err != nil {
			return err
		}
		k.stack.layers, k.stack.versions = k.stack.layers[:policies], k.stack.versions[:policies]
	}
	return nil
}

// folded folds the stack of a path, on top of the fields of a member, and visits.
func (w *walk) foldPath(kind int, p gateway.Path, m *member) error {
	k := &w.kinds[kind]
	if len(k.stack.layers) > 0 {
		k.stack.setReadings(k.kind, p.Route)
	}
	e := w.effective()
	*e = Effective{Kind: k.kind, Path: p, member: m}
	if m != nil && len(m.fields.Blocks) > 0 {
		e.object = &m.fields
		k.stack.layers = append(k.stack.layers, merge.Layer{Policy: e.object, Level: int(gateway.LevelObject)})
		k.stack.versions = append(k.stack.versions, m.version)
	}
	e.Layers = k.stack.layers
	w.budget.startPath(e)
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
	if k.last != nil && k.stack.matches(k.last) {
		return k.last, nil
	}
	w.key = appendMemoKey(w.key[:0], &k.stack)
	if f := w.lookup(); f != nil {
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
	w.memoize(f)
	return f, nil
}

// remembered returns what came of the stack whose key is at hand, nil if nobody
// remembers.
func (w *walk) lookup() *folded {
	if f := w.localMemo[string(w.key)]; f != nil {
		return f
	}
	return w.engine.memo.get(w.key)
}

// remember keeps what came of the stack whose key is at hand: for everybody, or
// beyond what one comparison may put there for this walk alone.
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

// mostOwn is how many folds a walk keeps for itself: those of paths close by.
const maxLocalMemo = 256

// effective returns a new effective policy, out of a number that were made at
// once: most live and die together.
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

// sameService reports whether the path ends at the service that it starts at,
// as a mesh's route to its own parent does. What targets the service then
// stands at its root alone, above the route.
func sameService(p gateway.Path) bool {
	return p.Service != nil && p.Backend.Object == p.Service.Ref()
}
