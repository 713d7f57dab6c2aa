package effective

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
)

// Walk calls visit for every path of the scope and every policy kind of the
// view that has a policy on it; with empty, also where no policy is. It stops
// at the first error, which is the budget's or visit's.
func (e *Engine) Walk(v *store.View, s Scope, empty bool, b *Budget, visit func(*Effective) error) error {
	w := newWalk(e, v, s, empty, b, visit)
	p := s.plan(v)
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

type walk struct {
	engine *Engine
	view   *store.View
	kinds  []*policykind.Kind
	by     []kindWalk // likewise
	budget *Budget
	visit  func(*Effective) error

	namespaceLevel bool // of the route's namespace, in some kind
	backends       bool // some kind's paths end there
	// labels of the namespace of the route before: routes come by namespace
	namespace string
	labels    labels.Set
	// cache of what is attached to objects that many paths share
	cache map[api.Ref][][]attachment
}

// kindWalk is a kind on the branch at hand.
type kindWalk struct {
	kind  *policykind.Kind
	view  *store.View
	shape shape
	meet  merge.Meet
	empty bool // paths without a policy are visited
	on    above
}

func newWalk(e *Engine, v *store.View, s Scope, empty bool, b *Budget, visit func(*Effective) error) *walk {
	w := &walk{
		engine: e, view: v, kinds: s.kinds(v, empty), budget: b, visit: visit,
		cache: make(map[api.Ref][][]attachment),
	}
	w.by = make([]kindWalk, len(w.kinds))
	for i, k := range w.kinds {
		w.by[i] = kindWalk{
			kind: k, view: v, shape: shapeOf(k), meet: k.Meet(),
			empty: empty || slices.Contains(s.Empty, k.Ref()),
		}
		w.namespaceLevel = w.namespaceLevel || w.by[i].shape.has[hierarchy.LevelRouteNamespace]
		w.backends = w.backends || w.by[i].shape.has[hierarchy.LevelBackend]
	}
	return w
}

// kinds returns the kinds of the view that have paths to visit: those with a
// policy somewhere, and those whose empty paths are meant.
func (s Scope) kinds(v *store.View, empty bool) []*policykind.Kind {
	out := v.Populated()
	switch {
	case empty:
		out = v.Kinds()
	case len(s.Empty) > 0:
		populated := out
		out = nil
		for _, k := range v.Kinds() {
			if slices.Contains(populated, k) || slices.Contains(s.Empty, k.Ref()) {
				out = append(out, k)
			}
		}
	}
	if s.Kinds == nil {
		return out
	}
	return slices.DeleteFunc(slices.Clone(out), func(k *policykind.Kind) bool { return !slices.Contains(s.Kinds, k.Ref()) })
}

// attach puts what is attached to an object where each kind has it.
func (w *walk) attach(object api.Ref, into func(*above) *[]attachment) {
	all := attached(w.view, w.kinds, object)
	for i := range w.by {
		to := into(&w.by[i].on)
		*to = nil
		if all != nil {
			*to = all[i]
		}
	}
}

// shared returns what is attached to an object that many paths share, by kind.
func (w *walk) shared(object api.Ref, kind int) []attachment {
	all, ok := w.cache[object]
	if !ok {
		all = attached(w.view, w.kinds, object)
		w.cache[object] = all
	}
	if all == nil {
		return nil
	}
	return all[kind]
}

func (w *walk) branch(p *plan, b branch) error {
	for i := range w.by {
		w.by[i].on = above{}
	}
	w.attach(api.Ref{Kind: hierarchy.KindMesh}, func(a *above) *[]attachment { return &a.mesh })
	if b.service != nil {
		return w.serviceBranch(b)
	}
	g := b.gateway
	w.attach((&hierarchy.Class{Name: g.Class}).Ref(), func(a *above) *[]attachment { return &a.class })
	w.attach((&hierarchy.Namespace{Name: g.Namespace}).Ref(), func(a *above) *[]attachment { return &a.gatewayNamespace })
	w.attach(g.Ref(), func(a *above) *[]attachment { return &a.gateway })
	if err := w.gatewayPaths(b); err != nil {
		return err
	}
	var doors []hierarchy.Door // all of the gateway's, a route may be on any
	for r := range b.routes {
		if doors == nil {
			doors = b.doors
			if !b.whole {
				doors = p.doors(b.root)
			}
		}
		if err := w.budget.alive(); err != nil {
			return err
		}
		if err := w.routeOn(doors, r); err != nil {
			return err
		}
	}
	return nil
}

// gatewayPaths visits the paths that end at the gateway or at a listener.
func (w *walk) gatewayPaths(b branch) error {
	for i := range w.by {
		k := &w.by[i]
		if !k.shape.gateway {
			continue
		}
		switch k.shape.gatewayEnd {
		case hierarchy.LevelGateway:
			if !b.whole {
				continue
			}
			if err := w.path(i, hierarchy.Path{Gateway: b.gateway, Rule: -1}); err != nil {
				return err
			}
		case hierarchy.LevelListener:
			for _, d := range b.doors {
				if err := w.path(i, doorPath(d)); err != nil {
					return err
				}
			}
		default:
		}
	}
	return nil
}

func doorPath(d hierarchy.Door) hierarchy.Path {
	return hierarchy.Path{Gateway: d.Gateway, Set: d.Set, Listener: d.Listener, Rule: -1}
}

// enter looks up what is attached to a route.
func (w *walk) enter(r *hierarchy.Route) {
	if w.labels == nil || w.namespace != r.Namespace {
		w.namespace, w.labels = r.Namespace, w.view.NamespaceLabels(r.Namespace)
	}
	w.attach(r.Ref(), func(a *above) *[]attachment { return &a.route })
	if w.namespaceLevel {
		of := (&hierarchy.Namespace{Name: r.Namespace}).Ref()
		for i := range w.by {
			w.by[i].on.routeNamespace = w.shared(of, i)
		}
	}
}

func (w *walk) routeOn(doors []hierarchy.Door, r *hierarchy.Route) error {
	if w.labels == nil || w.namespace != r.Namespace {
		w.namespace, w.labels = r.Namespace, w.view.NamespaceLabels(r.Namespace)
	}
	var open []hierarchy.Door
	for _, d := range doors {
		if d.Takes(r, w.labels) {
			open = append(open, d)
		}
	}
	if len(open) == 0 {
		return nil
	}
	w.enter(r)
	for i := range w.by {
		k := &w.by[i]
		if !k.shape.gateway || k.shape.gatewayEnd < hierarchy.LevelRoute || !k.shape.through(r.Kind) {
			continue
		}
		for _, d := range open {
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
func (w *walk) below(kind int, end hierarchy.Level, p hierarchy.Path) error {
	if end == hierarchy.LevelRoute {
		return w.path(kind, p)
	}
	for rule := range p.Route.Rules {
		p.Rule = rule
		if end == hierarchy.LevelRule {
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

func (w *walk) toBackends(kind int, p hierarchy.Path) error {
	rule := &p.Route.Rules[p.Rule]
	if len(rule.Backends) == 0 && w.by[kind].kind.ShortPaths {
		return w.path(kind, p)
	}
	for i := range rule.Backends {
		p.Backend = &rule.Backends[i]
		if !w.reaches(p.Route, p.Backend.Object) {
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
func (w *walk) reaches(r *hierarchy.Route, backend api.Ref) bool {
	return backend.Namespace == r.Namespace || w.view.Granted(r.Ref().PolicyKind(), r.Namespace, backend)
}

// virtualPath visits the path of a target that exists nowhere.
func (w *walk) virtualPath(ref api.Ref) error {
	for i, all := range attached(w.view, w.kinds, ref) {
		if len(all) == 0 {
			continue
		}
		k := &w.by[i]
		s := stack{}
		for _, a := range all {
			if a.target.Virtual {
				s.add(k, a.policy, hierarchy.LevelBackend)
			}
		}
		if len(s.layers) == 0 {
			continue
		}
		if err := w.folded(i, hierarchy.Path{Virtual: &ref, Rule: -1}, s, nil); err != nil {
			return err
		}
	}
	return nil
}

// path visits one path of a kind, or one for each item of the list whose
// fields the kind controls.
func (w *walk) path(kind int, p hierarchy.Path) error {
	k := &w.by[kind]
	p = k.shape.namespaces(p)
	var set, backend []attachment
	if p.Set != nil {
		set = w.shared(p.Set.Ref(), kind)
	}
	if p.Backend != nil && !sameService(p) {
		backend = w.shared(p.Backend.Object, kind)
	}
	s := k.stack(p, set, backend)
	if len(s.layers) == 0 && !k.empty {
		return nil
	}
	members, controlled := membersOf(k.kind, p)
	if !controlled {
		return w.folded(kind, p, s, nil)
	}
	for i := range members {
		p.Member = members[i].name
		if err := w.folded(kind, p, s, &members[i]); err != nil {
			return err
		}
	}
	return nil
}

// folded folds a stack, on top of the fields of a member, and visits.
func (w *walk) folded(kind int, p hierarchy.Path, s stack, m *member) error {
	k := w.kinds[kind]
	if len(s.layers) > 0 {
		s.dictate(k, p.Route)
	}
	e := &Effective{Kind: k, Path: p, member: m}
	if m != nil && len(m.fields.Blocks) > 0 {
		e.object = &m.fields
		s.layers = append(slices.Clip(s.layers), merge.Layer{Policy: e.object, Level: int(hierarchy.LevelObject)})
		s.versions = append(slices.Clip(s.versions), m.version)
	}
	result, err := w.engine.fold(s, w.budget)
	if err != nil {
		return err
	}
	e.Layers, e.Result, e.Outcomes = s.layers, result, result.Outcomes
	if e.object != nil {
		e.Outcomes = result.Outcomes[:len(result.Outcomes)-1] // the lowest
	}
	return w.visit(e)
}

// sameService reports whether the path ends at the service that it starts at,
// as a mesh's route to its own parent does. What targets the service then
// stands at its root alone, above the route.
func sameService(p hierarchy.Path) bool {
	return p.Service != nil && p.Backend.Object == p.Service.Ref()
}
