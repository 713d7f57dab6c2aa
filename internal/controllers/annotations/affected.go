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

// mostNamed is how many policies the message of a condition names.
const maxNamedPolicies = 10

// affected gathers the policies that affect an object: those that are in force on a
// path through it, and attached to it or to what is above it there.
type affected struct {
	object   snapshot.Object
	policies map[string]map[api.Ref]bool // by the name of the policies' kind
	found    map[*merge.Policy]bool
	expected int // how many there can be, 0 if that is not known
}

// errAll ends a walk that has nothing to find any more.
var errComplete = errors.New("all that can be found is")

func newAffected(of snapshot.Object) *affected {
	return &affected{object: of, policies: make(map[string]map[api.Ref]bool), found: make(map[*merge.Policy]bool)}
}

// add adds the policies of a path. The error is errAll.
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

// lowest returns the lowest level of a path that is the object's own, if the path
// goes through it.
func (a *affected) lowestLevel(p *gateway.Path) (level gateway.Level, through bool) {
	switch o := a.object.(type) {
	case *gateway.Class:
		return gateway.LevelGatewayClass, p.Gateway != nil && p.Gateway.Class == o.Name
	case *gateway.Gateway:
		if p.Set != nil { // the listener is the set's
			return gateway.LevelGateway, p.Gateway == o
		}
		return gateway.LevelListener, p.Gateway == o
	case *gateway.ListenerSet:
		return gateway.LevelListener, p.Set == o
	case *gateway.Route:
		return gateway.LevelRule, p.Route == o
	default:
		return 0, false
	}
}

// candidates returns which policies can affect a class, gateway or listener set at
// all: a gateway with ten thousand routes is mostly known by its first.
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

// kinds returns the names of the kinds of which some policy was found, sorted.
func (a *affected) kinds() []string { return slices.Sorted(maps.Keys(a.policies)) }

// message names the policies of a kind.
func (a *affected) message(kind string) string {
	refs := slices.SortedFunc(maps.Keys(a.policies[kind]), api.CompareRefs)
	names := make([]string, 0, maxNamedPolicies)
	for _, ref := range refs[:min(len(refs), maxNamedPolicies)] {
		names = append(names, ref.String())
	}
	text := "affected by " + strings.Join(names, ", ")
	if more := len(refs) - maxNamedPolicies; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
