package annotations

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

const (
	// maxConditions is the limit of a status of Gateway API, and reservedConditions
	// the number that stays free: a Gateway implementation that finds no room for its
	// own conditions cannot write its status.
	maxConditions      = 8
	reservedConditions = 2
	// maxNamedPolicies is the maximum number of policies that the message of a condition
	// names.
	maxNamedPolicies = 10
)

// Marks are all marks that an object should have.
type Marks struct {
	// Annotations of routes and policies.
	Annotations map[string]string
	// Conditions of kinds that have conditions, sorted by type; their transition time
	// is not set.
	Conditions []metav1.Condition
	// LeftOut are condition types that exceed the limit.
	LeftOut []string
}

// Hash returns the hash of an object with these marks (snapshot.MarksHash).
func (m *Marks) Hash() uint64 { return snapshot.MarksHash(m.Annotations, m.Conditions) }

// hasMarks reports whether objects of a kind may have marks. Kinds that cannot have any
// are known by name; all other kinds are policy kinds.
func hasMarks(k api.PolicyKind) bool {
	if gateway.Known(k) {
		return gateway.IsRoute(k) || hasConditions(k)
	}
	return k.Group != api.Group && k != policykind.KindDefinition
}

// hasConditions reports whether the marks of objects of a kind are conditions. Services
// and Namespaces have conditions, too, but permission to write the status of all
// Services would include where their traffic comes in.
func hasConditions(k api.PolicyKind) bool {
	return k.Group == api.GatewayGroup &&
		slices.Contains([]string{gateway.KindGatewayClass, gateway.KindGateway, gateway.KindListenerSet}, k.Kind)
}

// marksOf computes the marks of an object in a view. The error is that of ctx.
func (c *Controller) marksOf(ctx context.Context, v *snapshot.View, o snapshot.Object, current snapshot.Marks) (*Marks, error) {
	b := effective.NewBudget(ctx, math.MaxUint64)
	a := affected{object: o, policies: make(map[string]map[api.Ref]bool), found: make(map[*merge.Policy]bool)}
	if hasConditions(o.Ref().PolicyKind()) {
		if !c.opts.Affected {
			return &Marks{}, nil
		}
		err := c.opts.Engine.Walk(v, effective.ScopeOf(o), false, b, a.add)
		return a.conditions(current), err
	}
	text, err := Text(c.opts.Engine, v, o, b, a.add)
	if err != nil {
		return nil, err
	}
	m := &Marks{Annotations: make(map[string]string)}
	if text != "" {
		m.Annotations[Name(o)] = text
	}
	if c.opts.Affected {
		for kind := range a.policies {
			m.Annotations[api.Affected(kind)] = "true"
		}
	}
	return m, nil
}

// affected collects the policies that affect an object: those that are in force on a
// path through it and attached to it or above it.
type affected struct {
	object   snapshot.Object
	policies map[string]map[api.Ref]bool // by kind name
	found    map[*merge.Policy]bool
}

// add adds the policies of a path.
func (a *affected) add(e *effective.Effective) error {
	lowest, through := a.lowestLevel(&e.Path)
	if !through {
		return nil
	}
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		if a.found[o.Policy] || e.Level(o.Policy) > lowest || !slices.Contains([]api.State{api.Enforced, api.PartiallyEnforced}, effective.RulesState(o)) {
			continue
		}
		a.found[o.Policy] = true
		if a.policies[e.Kind.Kind] == nil {
			a.policies[e.Kind.Kind] = make(map[api.Ref]bool)
		}
		a.policies[e.Kind.Kind][e.Ref(o.Policy)] = true
	}
	return nil
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

// conditions returns one condition for each kind, for which there is room.
func (a *affected) conditions(current snapshot.Marks) *Marks {
	m := &Marks{}
	room := max(0, maxConditions-reservedConditions-current.Others)
	for i, kind := range slices.Sorted(maps.Keys(a.policies)) {
		if i >= room {
			m.LeftOut = append(m.LeftOut, api.Affected(kind))
			continue
		}
		m.Conditions = append(m.Conditions, metav1.Condition{
			Type: api.Affected(kind), Status: metav1.ConditionTrue, Reason: "Affected",
			Message: a.message(kind), ObservedGeneration: current.Generation,
		})
	}
	return m
}

// message lists the policies of a kind.
func (a *affected) message(kind string) string {
	refs := slices.SortedFunc(maps.Keys(a.policies[kind]), api.CompareRefs)
	names := make([]string, 0, maxNamedPolicies)
	for _, ref := range refs[:min(len(refs), maxNamedPolicies)] {
		names = append(names, ref.String())
	}
	return "affected by " + strings.Join(names, ", ") + api.More(" and ", len(refs)-maxNamedPolicies, "")
}
