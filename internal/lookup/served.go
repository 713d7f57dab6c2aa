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
	api.ServedRequest
	paths []gateway.Path // of the rules that serve it
	roots []snapshot.Object
	// answers are the places of At, in the same order.
	answers []place
	// client is the namespace of the client in the mesh.
	client string
}

// place is where a request goes at one gateway or Service.
type place struct {
	gateway.Path
	// attached are the routes that are asked.
	attached []gateway.Attached
}

// contains reports whether the request goes along a path, which may end above the rule.
func (r *served) contains(p *gateway.Path) bool {
	return slices.ContainsFunc(r.paths, func(s gateway.Path) bool {
		switch {
		case p.Virtual != nil:
			return false
		case s.Service != nil:
			return p.Service != nil && p.Service.Ref() == s.Service.Ref() && (p.Port == 0 || p.Port == s.Port) &&
				(p.Client == s.Client || p.Client == r.client || p.Client == "" && p.Route == nil) && goesThrough(p, &s)
		case p.Gateway == nil || p.Gateway.Ref() != s.Gateway.Ref():
			return false
		case p.Listener != nil:
			at, by := gateway.ListenerMatch{Gateway: p.Gateway, Set: p.Set, Listener: p.Listener}, gateway.ListenerMatch{Gateway: s.Gateway, Set: s.Set, Listener: s.Listener}
			return at.Same(&by) && goesThrough(p, &s)
		default:
			return goesThrough(p, &s)
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
	out := &served{ServedRequest: api.ServedRequest{Request: q.String(), At: []api.RequestAt{}}}
	if out.client = f.ClientNamespace; out.client != "" {
		return out, f.serveInMesh(out, q, f.ClientNamespace, f.Explain)
	}
	gateways, err := f.gatewaysNamed(f.Gateway)
	if err != nil {
		return nil, err
	}
	if len(gateways) == 0 {
		out.Message = fmt.Sprintf("there is no Gateway; for a request in a mesh, set %s", f.Name(FieldClientNamespace))
	}
	var found []gatewayAnswer
	for _, g := range gateways {
		found = append(found, f.atGateway(g, q, f.Port != nil)...)
	}
	for _, a := range nearest(found) {
		out.add(a.request(f.Explain), place{a.path(), a.Attached})
	}
	return out, nil
}

// add adds where the request goes at one gateway or Service.
func (r *served) add(at api.RequestAt, on place) {
	path := on.Path
	r.At, r.answers = append(r.At, at), append(r.answers, on)
	if !at.Served {
		return
	}
	r.Served = true
	r.paths = append(r.paths, path)
	if path.Service != nil {
		r.roots = append(r.roots, path.Service)
		return
	}
	r.roots = append(r.roots, path.Gateway)
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
		return nil, fmt.Errorf("invalid %s %q: must be NAMESPACE/NAME or NAME", f.Name(FieldGateway), name)
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
