package annotations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// maxNamedPolicies is the maximum number of policies that the message of a condition
// names.
const maxNamedPolicies = 10

// affected collects the policies that affect an object: those that are in force on a
// path through it and attached to it or above it.
type affected struct {
	object   snapshot.Object
	policies map[string]map[api.Ref]bool // by kind name
	found    map[*merge.Policy]bool
	expected int // number of candidates, 0 if not known
}

// errComplete ends a walk when all candidates have been found.
var errComplete = errors.New("all candidates found")

func newAffected(of snapshot.Object) *affected {
	return &affected{object: of, policies: make(map[string]map[api.Ref]bool), found: make(map[*merge.Policy]bool)}
}

// add adds the policies of a path. It returns errComplete when all are found.
func (a *affected) add(e *effective.Effective) error {
	lowest, through := a.lowestLevel(&e.Path)
	if !through {
		return nil
	}
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		if a.found[o.Policy] || !inForce(o) || e.Level(o.Policy) > lowest {
			continue
		}
		a.found[o.Policy] = true
		if a.policies[e.Kind.Kind] == nil {
			a.policies[e.Kind.Kind] = make(map[api.Ref]bool)
		}
		a.policies[e.Kind.Kind][e.Ref(o.Policy)] = true
	}
	if a.expected > 0 && len(a.found) == a.expected {
		return errComplete
	}
	return nil
}

func inForce(o *merge.Outcome) bool {
	state := effective.StateOf(o)
	return state == api.Enforced || state == api.PartiallyEnforced
}

// lowestLevel returns the lowest level of a path that belongs to the object, and
// whether the path goes through it.
func (a *affected) lowestLevel(p *gateway.Path) (level gateway.Level, through bool) {
	switch o := a.object.(type) {
	case *gateway.Class:
		return gateway.LevelGatewayClass, p.Gateway != nil && p.Gateway.Class == o.Name
	case *gateway.Gateway:
		if p.Set != nil { // the listener belongs to the set
			return gateway.LevelGateway, p.Gateway == o
		}
		return gateway.LevelListener, p.Gateway == o
	case *gateway.ListenerSet:
		return gateway.LevelListener, p.Set == o
	case *gateway.Route:
		return gateway.LevelFilter, p.Route == o
	default:
		return 0, false
	}
}

// policyCandidates returns the policies that can affect a class, gateway or listener
// set at all: often all are found on the first of a gateway's many routes.
func policyCandidates(v *snapshot.View, of snapshot.Object) map[api.Ref]bool {
	out := make(map[api.Ref]bool)
	on := func(refs ...api.Ref) {
		for _, ref := range refs {
			for p, t := range v.On(ref) {
				if p.Invalid == nil && t.Refused == "" {
					out[p.Ref()] = true
				}
			}
		}
	}
	gw := func(g *gateway.Gateway) {
		if g != nil {
			on((&gateway.Class{Name: g.Class}).Ref(), (&gateway.Namespace{Name: g.Namespace}).Ref(), g.Ref())
		}
	}
	on(api.Ref{Kind: gateway.KindMesh})
	switch o := of.(type) {
	case *gateway.Class:
		on(o.Ref())
	case *gateway.Gateway:
		gw(o)
	case *gateway.ListenerSet:
		gw(v.Gateway(o.GatewayNamespace, o.GatewayName))
		on(o.Ref())
	}
	return out
}

// kinds returns the names of the kinds with at least one policy, sorted.
func (a *affected) kinds() []string { return slices.Sorted(maps.Keys(a.policies)) }

// message lists the policies of a kind.
func (a *affected) message(kind string) string {
	refs := slices.SortedFunc(maps.Keys(a.policies[kind]), api.CompareRefs)
	names := make([]string, 0, maxNamedPolicies)
	for _, ref := range refs[:min(len(refs), maxNamedPolicies)] {
		names = append(names, ref.String())
	}
	text := "affected by " + strings.Join(names, ", ")
	if omitted := len(refs) - maxNamedPolicies; omitted > 0 {
		text += fmt.Sprintf(" and %d more", omitted)
	}
	return text
}
