package lookup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// ErrNotServed is returned if nothing serves a request. How far it comes is on stdout.
var ErrNotServed = errors.New("not served")

// served is where a request goes.
type served struct {
	request, message string
	places           []place
	// client is the namespace of the client in the mesh.
	client string
}

// place is where a request goes at one gateway or Service.
type place struct {
	at   api.RequestAt
	path gateway.Path // as far as the request comes
	// attached are the routes that are asked.
	attached []gateway.Attached
}

// root returns the gateway or Service of a place.
func (p *place) root() snapshot.Object {
	if p.path.Service != nil {
		return p.path.Service
	}
	return p.path.Gateway
}

// api returns where the request goes as in the output.
func (r *served) api() *api.ServedRequest {
	out := &api.ServedRequest{Request: r.request, Message: r.message, At: []api.RequestAt{}}
	for _, p := range r.places {
		out.At, out.Served = append(out.At, p.at), out.Served || p.at.Served
	}
	return out
}

// scope returns the paths through the gateways and Services that serve the request.
func (r *served) scope() effective.Scope {
	var roots []snapshot.Object
	for _, p := range r.places {
		if p.at.Served {
			roots = append(roots, p.root())
		}
	}
	return effective.ScopeOf(roots...)
}

// contains reports whether the request goes along a path, which may end above the rule.
func (r *served) contains(p *gateway.Path) bool {
	return p.Virtual == nil && slices.ContainsFunc(r.places, func(place place) bool {
		s := place.path
		switch {
		case !place.at.Served || !goesThrough(p, &s):
			return false
		case s.Service != nil:
			return p.Service != nil && p.Service.Ref() == s.Service.Ref() && (p.Port == 0 || p.Port == s.Port) &&
				(p.Client == s.Client || p.Client == r.client || p.Client == "" && p.Route == nil)
		case p.Gateway == nil || p.Gateway.Ref() != s.Gateway.Ref():
			return false
		case p.Listener == nil:
			return true
		default:
			at, by := gateway.ListenerMatch{Gateway: p.Gateway, Set: p.Set, Listener: p.Listener}, gateway.ListenerMatch{Gateway: s.Gateway, Set: s.Set, Listener: s.Listener}
			return at.Same(&by)
		}
	})
}

// specific returns the effective policies without those for all clients of a Service
// where there is one of the same kind for the clients of the request.
func (r *served) specific(all []*effective.Effective) []*effective.Effective {
	return slices.DeleteFunc(slices.Clone(all), func(e *effective.Effective) bool {
		return e.Path.Service != nil && e.Path.Client != r.client && slices.ContainsFunc(all, func(o *effective.Effective) bool {
			id := o.Path.ID()
			id.Client = e.Path.Client
			return o.Path.Client == r.client && o.Kind == e.Kind && id == e.Path.ID()
		})
	})
}

// goesThrough reports whether a path has the route and the rule of another one, as far as
// it has any.
func goesThrough(p, s *gateway.Path) bool {
	return p.Route == nil || p.Route.Ref() == s.Route.Ref() && (p.Rule < 0 || p.Rule == s.Rule)
}

// finder finds where a request goes.
type finder struct {
	view *snapshot.View
	Request
	hides func(api.Ref) bool // the Gateways and Services that the reader may not get, nil for none
}

func (f *finder) find() (*served, error) {
	q, err := f.Parse()
	if err != nil {
		return nil, err
	}
	out := &served{request: q.String(), client: f.ClientNamespace}
	if out.client != "" {
		at, err := f.inMesh(q, out.client)
		out.places = []place{at}
		return out, err
	}
	gateways, err := f.gatewaysNamed(f.Gateway)
	if err != nil {
		return nil, err
	}
	if len(gateways) == 0 {
		out.message = fmt.Sprintf("there is no Gateway; for a request in a mesh, set %s", f.Names.ClientNamespace)
	}
	var found []gatewayAnswer
	for _, g := range gateways {
		found = append(found, f.atGateway(g, q)...)
	}
	for _, a := range nearest(found) {
		out.places = append(out.places, place{a.request(), a.path(), a.Attached})
	}
	return out, nil
}

// gatewaysNamed returns the gateway of a name, or all.
func (f *finder) gatewaysNamed(name string) ([]*gateway.Gateway, error) {
	if name == "" {
		return slices.Collect(f.view.Gateways()), nil
	}
	namespace, base, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		namespace, base = f.Namespace, name
	case namespace == "" || base == "" || strings.Contains(base, "/"):
		return nil, fmt.Errorf("invalid %s %q: must be NAMESPACE/NAME or NAME", f.Names.Gateway, name)
	}
	g, err := named[*gateway.Gateway](f, (&gateway.Gateway{Namespace: namespace, Name: base}).Ref())
	return []*gateway.Gateway{g}, err
}

// named returns an object that the request names. Whether a hidden one exists is not said.
func named[T snapshot.Object](f *finder, ref api.Ref) (T, error) {
	hidden := f.hides != nil && f.hides(ref)
	o, ok := f.view.Get(ref).(T) // the same work in both cases
	switch {
	case ok && !hidden:
		return o, nil
	case f.hides != nil:
		return o, NotFound(ref)
	default:
		return o, fmt.Errorf("%s %w", ref, ErrNotFound)
	}
}
