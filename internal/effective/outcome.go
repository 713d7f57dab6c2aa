package effective

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// StateOf returns the state of a policy on one path (SEMANTICS section 6).
func StateOf(o *merge.Outcome) api.State {
	switch {
	case !o.TookPart && o.Skipped:
		return api.Inactive
	case len(o.Lost) == 0:
		return api.Enforced
	case len(o.Lost) == o.Rules:
		return api.Overridden
	default:
		return api.PartiallyEnforced
	}
}

// State returns what the policies on the path come to: empty where there is
// none, Inactive where no rule of theirs is in force, Enforced where none lost
// a rule, else PartiallyEnforced.
func (e *Effective) State() api.State {
	state := api.State("")
	for i := range e.Outcomes {
		switch s := StateOf(&e.Outcomes[i]); {
		case s == api.Inactive && state == "":
			state = api.Inactive
		case s == api.Enforced && (state == "" || state == api.Inactive):
			state = api.Enforced
		case s == api.PartiallyEnforced || s == api.Overridden:
			return api.PartiallyEnforced
		}
	}
	return state
}

// Outcomes adds up what became of policies over the paths that they are on.
type Outcomes struct {
	tallies map[*merge.Policy]*tally
}

type tally struct {
	paths    api.PathCounts
	survived bool // some rule did, on some path
	lost     map[lostTo]*lostOn
	whole    map[api.Ref]int // by which policy it was replaced, and on how many paths
	replaces bool            // another one whole, on some path
}

// lostTo is a loss but for the path.
type lostTo struct {
	rule        string
	to, inForce api.Ref
	equal       bool
}

// lostOn counts the paths of a loss, and those of them on which the whole policy
// was replaced.
type lostOn struct{ paths, whole int }

// Add counts the policies of one path.
func (s *Outcomes) Add(e *Effective) {
	if s.tallies == nil {
		s.tallies = make(map[*merge.Policy]*tally)
	}
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		t := s.tallies[o.Policy]
		if t == nil {
			t = &tally{lost: make(map[lostTo]*lostOn), whole: make(map[api.Ref]int)}
			s.tallies[o.Policy] = t
		}
		t.add(e, o)
	}
}

func (t *tally) add(e *Effective, o *merge.Outcome) {
	t.paths.Total++
	switch StateOf(o) {
	case api.Inactive:
		t.paths.Inactive++
	case api.Enforced:
		t.paths.Enforced++
	case api.Overridden:
		t.paths.Overridden++
	default:
		t.paths.PartiallyEnforced++
	}
	t.survived = t.survived || o.Rules > len(o.Lost)
	t.replaces = t.replaces || o.Policy.Empty() && e.replaces(o.Policy)
	by := o.ReplacedBy()
	if by != nil {
		t.whole[e.Ref(by)]++
	}
	for _, l := range o.Lost {
		k := lostTo{rule: l.Key.String(), to: e.Ref(l.To.Policy), equal: l.Equal}
		if l.InForce != nil {
			k.inForce = e.Ref(l.InForce)
		}
		on := t.lost[k]
		if on == nil {
			on = new(lostOn)
			t.lost[k] = on
		}
		on.paths++
		if by != nil {
			on.whole++
		}
	}
}

// state returns the state over all paths.
func (t *tally) state() api.State {
	switch {
	case t.paths.Total == t.paths.Inactive:
		return api.Inactive
	case t.paths.Overridden+t.paths.PartiallyEnforced == 0:
		return api.Enforced
	case t.survived:
		return api.PartiallyEnforced
	default:
		return api.Overridden
	}
}

// Of returns the outcome of a policy. Every path that the policy is on must
// have been added.
func (s *Outcomes) Of(v *snapshot.View, p *policykind.Policy) api.Outcome {
	out := api.Outcome{Policy: p.Ref(), Targets: Targets(v, p)}
	t := s.tallies[&p.Policy]
	if t == nil {
		out.State, out.Message = withoutPath(v, p, out.Targets)
		return out
	}
	out.State, out.Paths, out.Message = t.state(), t.paths, emptyMessage(&p.Policy, t.replaces)
	for by, n := range t.whole {
		out.ReplacedBy = append(out.ReplacedBy, api.PolicyCount{Policy: by, Paths: n})
	}
	slices.SortFunc(out.ReplacedBy, func(a, b api.PolicyCount) int { return api.CompareRefs(a.Policy, b.Policy) })
	out.Lost = t.losses()
	return out
}

// losses returns the lost rules by rule and policies.
func (t *tally) losses() []api.LostCount {
	var out []api.LostCount
	for _, l := range slices.SortedFunc(maps.Keys(t.lost), compareLosses) {
		count := api.LostCount{Rule: l.rule, To: l.to, Equal: l.equal, Paths: t.lost[l].paths, Whole: t.lost[l].whole}
		if l.inForce != (api.Ref{}) {
			count.InForce = &l.inForce
		}
		out = append(out, count)
	}
	return out
}

func compareLosses(a, b lostTo) int {
	c := cmp.Or(strings.Compare(a.rule, b.rule), api.CompareRefs(a.to, b.to), api.CompareRefs(a.inForce, b.inForce))
	switch {
	case c != 0 || a.equal == b.equal:
		return c
	case b.equal:
		return -1
	default:
		return 1
	}
}

// withoutPath returns the state of a policy that is on no path, and why.
func withoutPath(v *snapshot.View, p *policykind.Policy, targets []api.Target) (api.State, string) {
	if p.Invalid != nil {
		return api.Invalid, p.Invalid.Error()
	}
	if p.Unread != "" {
		return api.NoPath, "its reach is not known: " + p.Unread
	}
	if i := slices.IndexFunc(targets, func(t api.Target) bool { return t.Accepted }); i >= 0 {
		why, _ := NoPath(v, p, targets[i])
		return api.NoPath, why
	}
	for _, state := range []api.State{api.TargetNotFound, api.Conflicted} {
		i := slices.IndexFunc(targets, func(t api.Target) bool { return t.Reason == state })
		if i >= 0 {
			return state, Describe(p, targets[i])
		}
	}
	return api.NoPath, ""
}

// NoLevelReason says why a policy has no effect on a target that it may name: its
// kind's hierarchy has no level for it. It is empty if there is one.
func NoLevelReason(p *policykind.Policy, t api.Target) string {
	switch {
	case p.Kind.HasLevelAt(t):
		return ""
	case p.Kind.Source == policykind.Label:
		return fmt.Sprintf("how a policy of kind %s works on a %s is not known: write a PolicyProfile (its CRD's label is all that is known of it)",
			p.Kind.Kind, t.Target.Kind)
	default:
		return fmt.Sprintf("policies of kind %s may not stand at %s: their levels are %s",
			p.Kind.Kind, policykind.Target{Ref: t.Target, Section: t.Section, Port: t.Port}, levelNamesOf(p.Kind))
	}
}

func levelNamesOf(k *policykind.Kind) string {
	out := make([]string, len(k.Levels))
	for i, l := range k.Levels {
		out[i] = string(l)
	}
	return strings.Join(out, ", ")
}

// Describe says why a target is not accepted.
func Describe(p *policykind.Policy, t api.Target) string {
	target := policykind.Target{Ref: t.Target, Section: t.Section, Port: t.Port}
	switch {
	case t.Refused != "":
		return t.Refused
	case t.By != nil:
		return fmt.Sprintf("%s is held by %s, which is older", target, *t.By)
	case t.Selector != "":
		return fmt.Sprintf("no %s has %s", t.Target.Kind, t.Selector)
	default:
		return target.String() + " does not exist"
	}
}

// Targets tells for each target of a policy whether it is accepted, in the
// order of group, kind, namespace, name and section.
func Targets(v *snapshot.View, p *policykind.Policy) []api.Target {
	out := make([]api.Target, 0, len(p.Targets))
	for _, t := range v.Targets(p) {
		out = append(out, target(v, p, t))
	}
	slices.SortStableFunc(out, func(a, b api.Target) int {
		return cmp.Or(api.CompareRefs(a.Target, b.Target), strings.Compare(a.Section, b.Section), cmp.Compare(a.Port, b.Port), strings.Compare(a.Selector, b.Selector))
	})
	return out
}

func target(v *snapshot.View, p *policykind.Policy, t policykind.Target) api.Target {
	out := api.Target{Target: t.Ref, Section: t.Section, Port: t.Port, Refused: t.Refused}
	if t.Selector != nil {
		out.Selector = t.Selector.String()
	}
	switch {
	case p.Invalid != nil:
		out.Reason = api.Invalid
	case t.Refused != "" || !Exists(v, t):
		out.Reason = api.TargetNotFound
	default:
		if h := Holder(v, p, t); h != p {
			by := h.Ref()
			out.Reason, out.By = api.Conflicted, &by
		}
	}
	out.Accepted = out.Reason == ""
	return out
}

// Exists reports whether a target and its section exist. A target of a kind
// that the hierarchy does not know, and a virtual one, is taken to: nothing is
// known against it. So is a namespace, which need not be known.
func Exists(v *snapshot.View, t policykind.Target) bool {
	if t.Selector != nil {
		return false // it selected nothing
	}
	if t.Virtual || !gateway.Known(t.Ref.PolicyKind()) {
		return true
	}
	switch o := v.Get(t.Ref).(type) {
	case *gateway.Class, *gateway.Namespace:
		return t.Whole()
	case *gateway.Gateway:
		return t.Whole() || gateway.HasListener(o.Listeners, t.Section, t.Port)
	case *gateway.ListenerSet:
		return t.Whole() || gateway.HasListener(o.Listeners, t.Section, t.Port)
	case *gateway.Route:
		return t.Whole() || o.HasSection(t.Section)
	case *gateway.Service:
		return (t.Section == "" || o.Port(t.Section) != 0) && (t.Port == 0 || o.HasPort(t.Port))
	default:
		return t.Ref.Kind == gateway.KindNamespace && t.Whole()
	}
}
