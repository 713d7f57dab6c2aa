package lookup

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// hidesPlace reports whether a gateway or Service is hidden and has nothing to do with
// the object of the question, which the reader may get.
func (q *Query) hidesPlace(ref api.Ref) bool {
	return !slices.Contains(q.parents(), ref) && q.Hides(ref)
}

// parents returns the gateways and Services that the object itself names.
func (q *Query) parents() []api.Ref {
	var parents []gateway.Parent
	switch o := q.Objects[0].(type) {
	case *gateway.Route:
		parents = o.Parents
	case *gateway.ListenerSet:
		return []api.Ref{(&gateway.Gateway{Namespace: o.GatewayNamespace, Name: o.GatewayName}).Ref()}
	}
	var out []api.Ref
	for _, p := range parents {
		out = append(out, p.Ref())
		if g := q.View.GatewayOf(p); g != nil {
			out = append(out, g.Ref())
		}
	}
	return out
}

// restrict returns where a request goes without what the reader is not allowed to know:
// places that are hidden, routes that are, and messages about the routes of a gateway if
// some of them are.
func (q *Query) restrict(s *served) *served {
	object := q.Objects[0].Ref()
	kept := &served{request: s.request, message: s.message, client: s.client}
	for _, p := range s.places {
		if pathContains(&p.path, object) || !q.hidesPlace(p.root().Ref()) {
			p.at = q.restrictAt(p)
			kept.places = append(kept.places, p)
		}
	}
	if len(kept.places) == 0 {
		kept.message = fmt.Sprintf("the request does not go through %s", object)
	}
	return kept
}

// restrictAt returns the answer at one gateway or Service without what is hidden.
func (q *Query) restrictAt(on place) api.RequestAt {
	at := on.at
	if on.path.Route != nil && q.Hides(on.path.Route.Ref()) {
		above := on.path
		above.Route, above.Rule = nil, -1
		at.Path, at.Hostname, at.Match = above.Elements(), "", ""
		at.Message = "a route that you are not allowed to get serves the request"
	}
	at.Candidates = slices.DeleteFunc(slices.Clone(at.Candidates), q.hidesCandidate)
	if !q.hidesSome(on) {
		return at
	}
	if !at.Served {
		at.Message = fmt.Sprintf("nothing that you are allowed to get serves the request; check the hostnames, parentRefs and rules of %s", q.Objects[0].Ref())
	}
	at.Assumptions = slices.Clone(at.Assumptions)
	for i := range at.Assumptions {
		at.Assumptions[i].Message = "the answer may depend on objects that you are not allowed to get; ask their owners"
	}
	return at
}

// hidesCandidate reports whether the route of a candidate is hidden.
func (q *Query) hidesCandidate(c api.RequestCandidate) bool {
	return q.Hides(api.Ref{Group: api.GatewayGroup, Kind: strings.TrimSuffix(c.Rule.Kind, "Rule"), Namespace: c.Rule.Namespace, Name: c.Rule.Name})
}

// hidesSome reports whether the gateway or Service, or a route that is asked there, is
// hidden: messages name these.
func (q *Query) hidesSome(on place) bool {
	return q.Hides(on.root().Ref()) || slices.ContainsFunc(on.attached, func(a gateway.Attached) bool { return q.Hides(a.Route.Ref()) })
}

// NotFound returns the error about an object that does not exist, or that the reader is
// not allowed to get.
func NotFound(ref api.Ref) error {
	return fmt.Errorf("%s %w, or you are not allowed to get it", ref, ErrNotFound)
}
