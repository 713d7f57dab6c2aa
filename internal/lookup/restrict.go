package lookup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// reader is what the reader of an answer is allowed to know besides the objects that
// Hides does not hide: the object that the question is about, and its parents.
type reader struct {
	view   *snapshot.View
	object snapshot.Object
	hides  effective.Hides
}

// hidesPlace reports whether a gateway or Service is hidden and has nothing to do with
// the object.
func (r *reader) hidesPlace(ref api.Ref) bool {
	return ref != r.object.Ref() && !slices.Contains(r.parents(), ref) && r.hides(ref)
}

// parents returns the gateways and Services that the object itself names.
func (r *reader) parents() []api.Ref {
	var parents []gateway.Parent
	switch o := r.object.(type) {
	case *gateway.Route:
		parents = o.Parents
	case *gateway.ListenerSet:
		return []api.Ref{(&gateway.Gateway{Namespace: o.GatewayNamespace, Name: o.GatewayName}).Ref()}
	}
	var out []api.Ref
	for _, p := range parents {
		out = append(out, p.Ref())
		if g := r.view.GatewayOf(p); g != nil {
			out = append(out, g.Ref())
		}
	}
	return out
}

// restrict removes what a reader is not allowed to know: places that are hidden, routes
// that are, and messages about the routes of a gateway if some of them are.
func (s *Served) restrict(r *reader) {
	var kept Served
	for i, on := range s.answers {
		if through := pathContains(on.Path, r.object.Ref()); !through && r.hidesPlace(on.root()) {
			continue
		}
		kept.add(r.restrict(s.At[i], on), on)
	}
	s.At, s.answers, s.paths, s.roots = append([]api.RequestAt{}, kept.At...), kept.answers, kept.paths, kept.roots
	s.Served = kept.Served
	if len(s.At) == 0 {
		s.Message = fmt.Sprintf("the request does not go through %s", r.object.Ref())
	}
}

// root returns the gateway or Service of a place.
func (p *place) root() api.Ref {
	if p.Service != nil {
		return p.Service.Ref()
	}
	return p.Gateway.Ref()
}

// restrict returns the answer at one gateway or Service without what is hidden.
func (r *reader) restrict(at api.RequestAt, on place) api.RequestAt {
	if on.Route != nil && on.Route.Ref() != r.object.Ref() && r.hides(on.Route.Ref()) {
		above := on.Path
		above.Route, above.Rule = nil, -1
		at.Path, at.Hostname, at.Match = above.Elements(), "", ""
		at.Message = "a route that you are not allowed to get serves the request"
	}
	at.Candidates = slices.DeleteFunc(slices.Clone(at.Candidates), func(c api.RequestCandidate) bool { return r.hidesCandidate(c, on) })
	if !r.hidesSome(on) {
		return at
	}
	if !at.Served {
		at.Message = fmt.Sprintf("nothing that you are allowed to get serves the request; check the hostnames, parentRefs and rules of %s", r.object.Ref())
	}
	at.Assumptions = slices.Clone(at.Assumptions)
	for i := range at.Assumptions {
		at.Assumptions[i].Message = "the answer may depend on objects that you are not allowed to get; ask their owners"
	}
	return at
}

// hidesCandidate reports whether the route of a candidate is hidden.
func (r *reader) hidesCandidate(c api.RequestCandidate, on place) bool {
	return slices.ContainsFunc(on.attached, func(a gateway.Attached) bool {
		ref := a.Route.Ref()
		return ref.Namespace == c.Rule.Namespace && ref.Name == c.Rule.Name && r.hidesRoute(ref)
	})
}

// hidesSome reports whether the gateway or Service, or a route that is asked there, is
// hidden: messages name these.
func (r *reader) hidesSome(on place) bool {
	return r.hides(on.root()) || slices.ContainsFunc(on.attached, func(a gateway.Attached) bool { return r.hidesRoute(a.Route.Ref()) })
}

func (r *reader) hidesRoute(ref api.Ref) bool { return ref != r.object.Ref() && r.hides(ref) }

// checkPlace returns an error if the Gateway or the Service of a request is hidden, or
// does not exist: which of the two is not said.
func (r *Request) checkPlace(by *reader) error {
	var ref api.Ref
	switch {
	case r.Gateway != "":
		namespace, name, ok := strings.Cut(r.Gateway, "/")
		if !ok {
			namespace, name = r.Namespace, r.Gateway
		}
		ref = (&gateway.Gateway{Namespace: namespace, Name: name}).Ref()
	case r.ClientNamespace != "":
		q, err := r.Parse()
		if err != nil {
			return err
		}
		name, rest, _ := strings.Cut(q.Host, ".")
		namespace, _, _ := strings.Cut(rest, ".")
		ref = (&gateway.Service{Namespace: cmp.Or(namespace, r.ClientNamespace), Name: name}).Ref()
	default:
		return nil
	}
	if hidden := by.hidesPlace(ref); hidden || by.view.Get(ref) == nil { // the same work in both cases
		return NotFound(ref)
	}
	return nil
}

// NotFound returns the error about an object that does not exist, or that the reader is
// not allowed to get.
func NotFound(ref api.Ref) error {
	return fmt.Errorf("%s %w, or you are not allowed to get it", ref, ErrNotFound)
}
