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

// RulesState returns the state of a policy on one path by its rules alone (SEMANTICS
// section 6).
func RulesState(o *merge.Outcome) api.State {
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

// StateOf returns the state of a policy on the path: Unreached where no request reaches it,
// Overridden for one without rules that another policy replaces.
func (e *Effective) StateOf(o *merge.Outcome) api.State {
	switch {
	case e.Unreached != nil:
		return api.Unreached
	case o.Policy.Empty() && e.replacedBy(o) != nil:
		return api.Overridden
	default:
		return RulesState(o)
	}
}

// replacedBy returns the policy that replaces another one as a whole, which may have no
// rules to lose; nil if there is none.
func (e *Effective) replacedBy(o *merge.Outcome) *merge.Policy {
	if !o.Policy.Empty() {
		return o.ReplacedBy()
	}
	var by *merge.Policy
	for i := range slices.Backward(e.Layers) {
		l := &e.Layers[i]
		replaced := l.As != nil && l.As.Block == merge.Bare && (l.As.By != nil || l.As.Strategy == merge.Atomic)
		switch {
		case l.Policy == o.Policy && !replaced:
			return nil
		case l.Policy == o.Policy && l.As.By != nil:
			return l.As.By
		case l.Policy == o.Policy:
			return by
		case !replaced && l.Policy != e.object:
			by = l.Policy
		}
	}
	return nil
}

// State returns the state of the policies on the path together: empty if there are
// none, Inactive if none of their rules is in force, Enforced if no rule was lost, else
// PartiallyEnforced.
func (e *Effective) State() api.State {
	state := api.State("")
	for i := range e.Outcomes {
		switch s := RulesState(&e.Outcomes[i]); {
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

// Outcomes sums up the outcomes of policies over the paths that they are on.
type Outcomes struct {
	tallies map[*merge.Policy]*tally
	unread  map[*policykind.Policy]*Unread
}

type tally struct {
	paths    api.PathCounts
	survived bool // some rule is in force on some path
	lost     map[loss]*lossCount
	whole    map[api.Ref]int // number of paths by the policy that replaced it as a whole
	replaces bool            // it replaces another policy as a whole on some path
	taken    *gateway.Reach  // of the first path that no request reaches
}

// loss is a lost rule, whatever the path.
type loss struct {
	rule        string
	to, inForce api.Ref
	equal       bool
}

// lossCount counts the paths of a loss, and those of them on which the policy was
// replaced as a whole.
type lossCount struct{ paths, whole int }

// Add counts the policies of one path.
func (all *Outcomes) Add(e *Effective) {
	if all.tallies == nil {
		all.tallies = make(map[*merge.Policy]*tally)
	}
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		t := all.tallies[o.Policy]
		if t == nil {
			t = &tally{lost: make(map[loss]*lossCount), whole: make(map[api.Ref]int)}
			all.tallies[o.Policy] = t
		}
		t.add(e, o)
	}
	for _, p := range e.Ignored {
		if all.unread == nil {
			all.unread = make(map[*policykind.Policy]*Unread)
		}
		if all.unread[p] == nil {
			all.unread[p] = new(Unread)
		}
		all.unread[p].Add(e)
	}
}

func (t *tally) add(e *Effective, o *merge.Outcome) {
	t.paths.Total++
	state := e.StateOf(o)
	switch state {
	case api.Unreached:
		if t.paths.Unreached++; t.taken == nil {
			t.taken = e.Unreached
		}
		return
	case api.Inactive:
		t.paths.Inactive++
	case api.Enforced:
		t.paths.Enforced++
	case api.Overridden:
		t.paths.Overridden++
	default:
		t.paths.PartiallyEnforced++
	}
	t.survived = t.survived || o.Rules > len(o.Lost) || state == api.Enforced
	t.replaces = t.replaces || o.Policy.Empty() && e.replaces(o.Policy)
	by := e.replacedBy(o)
	if by != nil {
		t.whole[e.Ref(by)]++
	}
	for _, l := range o.Lost {
		k := loss{rule: l.Key.String(), to: e.Ref(l.To.Policy), equal: l.Equal}
		if l.InForce != nil {
			k.inForce = e.Ref(l.InForce)
		}
		on := t.lost[k]
		if on == nil {
			on = new(lossCount)
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
	case t.paths.Total == t.paths.Unreached:
		return api.Unreached
	case t.paths.Total == t.paths.Inactive+t.paths.Unreached:
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
func (all *Outcomes) Of(v *snapshot.View, p *policykind.Policy) api.Outcome {
	out := api.Outcome{Policy: p.Ref(), Targets: Targets(v, p)}
	t, unread := all.tallies[&p.Policy], all.unread[p]
	switch {
	case t != nil:
		out.State, out.Paths, out.Message = t.state(), t.paths, emptyMessage(&p.Policy, t.replaces)
		if out.State == api.Unreached {
			out.Message = "no request reaches its paths: " + t.taken.Taker(nil)
		}
	case unread != nil:
		out.State = api.NoPath
	default:
		out.State, out.Message = stateWithoutPath(v, p, out.Targets)
	}
	if unread != nil {
		out.Paths.NotRead = unread.Paths
		out.Message = strings.Join(append(slices.DeleteFunc([]string{out.Message}, func(s string) bool { return s == "" }), unread.Reasons()...), "; ")
	}
	if t == nil {
		return out
	}
	for by, n := range t.whole {
		out.ReplacedBy = append(out.ReplacedBy, api.PolicyCount{Policy: by, Paths: n})
	}
	slices.SortFunc(out.ReplacedBy, func(a, b api.PolicyCount) int { return api.CompareRefs(a.Policy, b.Policy) })
	out.Lost = losses(t.lost)
	return out
}

// losses returns lost rules, sorted by rule and policies.
func losses(lost map[loss]*lossCount) []api.LostCount {
	var out []api.LostCount
	for _, l := range slices.SortedFunc(maps.Keys(lost), compareLosses) {
		count := api.LostCount{Rule: l.rule, To: l.to, Equal: l.equal, Paths: lost[l].paths, Whole: lost[l].whole}
		if l.inForce != (api.Ref{}) {
			count.InForce = &l.inForce
		}
		out = append(out, count)
	}
	return out
}

func compareLosses(a, b loss) int {
	return cmp.Or(strings.Compare(a.rule, b.rule), api.CompareRefs(a.to, b.to), api.CompareRefs(a.inForce, b.inForce), cmp.Compare(bit(a.equal), bit(b.equal)))
}

// stateWithoutPath returns the state of a policy that is on no path, and the reason.
func stateWithoutPath(v *snapshot.View, p *policykind.Policy, targets []api.Target) (api.State, string) {
	if p.Invalid != nil {
		return api.Invalid, p.Invalid.Error()
	}
	if p.Unread != "" {
		return api.NoPath, "affected paths are unknown: " + p.Unread
	}
	if i := slices.IndexFunc(targets, func(t api.Target) bool { return t.Accepted }); i >= 0 {
		why, _ := NoPath(v, p, targets[i])
		return api.NoPath, why
	}
	if len(targets) == 0 {
		return api.NoPath, NoTarget(p.Kind)
	}
	for _, state := range []api.State{api.TargetNotFound, api.Conflicted} {
		i := slices.IndexFunc(targets, func(t api.Target) bool { return t.Reason == state })
		if i >= 0 {
			return state, Describe(v, p, targets[i])
		}
	}
	return api.NoPath, ""
}

// NoLevelReason returns why a policy has no effect on an allowed target: its kind has no
// level for the target. It is empty if the kind has one.
func NoLevelReason(p *policykind.Policy, t api.Target) string {
	switch {
	case p.Kind.HasLevelAt(t):
		return ""
	case p.Kind.Source == policykind.Label:
		return fmt.Sprintf("policies of kind %s are not supported on a %s: create a PolicyProfile (the CRD has only the policy label)",
			p.Kind.Kind, t.Target.Kind)
	default:
		return fmt.Sprintf("policies of kind %s are not supported at %s: supported levels: %s",
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

// NoTarget returns that a policy of a kind has no target.
func NoTarget(k *policykind.Kind) string {
	const none = "it has no target"
	switch a := k.Attachment; {
	case a.ExtensionRef:
		return none + ", and no filter of a route refers to it"
	case a.ParametersRef:
		return "no parametersRef of a GatewayClass or Gateway names it"
	case a.Annotation != "":
		return fmt.Sprintf("no annotation %s names it", a.Annotation)
	default:
		return none
	}
}

// Describe returns why a target is not accepted.
func Describe(v *snapshot.View, p *policykind.Policy, t api.Target) string {
	target := policykind.Target{Ref: t.Target, Section: t.Section, Port: t.Port}
	switch {
	case t.Refused != "":
		return t.Refused
	case t.By != nil && !targets(v, *t.By, target):
		return fmt.Sprintf("%s conflicts with %s on another target: policies of kind %s have an effect on all of their targets, or on none", p.Ref(), *t.By, p.Kind.Kind)
	case t.By != nil:
		return fmt.Sprintf("%s already has %s, which is %s", target, *t.By, OlderText(p, v.Get(*t.By)))
	case t.Selector != "":
		return fmt.Sprintf("no %s has %s", t.Target.Kind, t.Selector)
	default:
		return target.String() + " does not exist" + sectionHint(p.Kind, t)
	}
}

// targets reports whether a policy has a target in the same place.
func targets(v *snapshot.View, by api.Ref, at policykind.Target) bool {
	for p, t := range v.On(at.Ref) {
		if p.Ref() == by && t.SamePlace(at) {
			return true
		}
	}
	return false
}

// OlderText says why another policy comes before one on the same target.
func OlderText(p *policykind.Policy, by snapshot.Object) string {
	if h, ok := by.(*policykind.Policy); ok && h.Created == p.Created {
		return "as old and first by name"
	}
	return "older"
}

// sectionHint explains that rule-N, which output calls a rule without a name, does not
// select the rule in most kinds.
func sectionHint(k *policykind.Kind, t api.Target) string {
	if k.Targets.UnnamedRules || t.Target.Group != api.GatewayGroup || !strings.HasPrefix(t.Section, "rule-") {
		return ""
	}
	return fmt.Sprintf(": policies of kind %s select a rule by its own name, not by its position", k.Kind)
}

// Targets returns the targets of a policy, and for each of them whether it is accepted.
// They are sorted by group, kind, namespace, name and section.
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
	out := api.Target{Target: t.Ref, Section: t.Section, Port: t.Port, AttachedBy: t.AttachedBy, Refused: t.Refused}
	if t.Selector != nil {
		out.Selector = t.Selector.String()
	}
	switch {
	case p.Invalid != nil:
		out.Reason = api.Invalid
	case t.Refused != "" || !Exists(v, p.Kind, t):
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

// Exists reports whether a target of a policy of kind k and its section exist. It returns true for a target of
// an unsupported kind and for a virtual one, since this cannot be decided, and for a
// namespace, which need not be in the cache.
func Exists(v *snapshot.View, k *policykind.Kind, t policykind.Target) bool {
	if t.Selector != nil {
		return false // it selected nothing
	}
	if t.Virtual || t.AttachedBy != "" || !gateway.Known(t.Ref.PolicyKind()) {
		return true
	}
	switch o := v.Get(t.Ref).(type) {
	case *gateway.Class, *gateway.Namespace:
		return t.Whole()
	case *gateway.Gateway:
		return t.Whole() || gateway.HasListener(o.Listeners, t.Section, t.Port) || k.Targets.SetSections &&
			slices.ContainsFunc(v.Listeners(o), func(m gateway.ListenerMatch) bool { return onListener(&t, m.Listener) })
	case *gateway.ListenerSet:
		return t.Whole() || gateway.HasListener(o.Listeners, t.Section, t.Port)
	case *gateway.Route:
		return t.Whole() || len(rulesAt(k, o, t)) > 0
	case *gateway.Service:
		named := t.Section == "" || o.Port(t.Section) != 0 || len(k.Targets.NumberedSections) > 0 && snapshot.HasSection(o, t.Section)
		return named && (t.Port == 0 || o.HasPort(t.Port))
	default:
		return t.Ref.Kind == gateway.KindNamespace && t.Whole()
	}
}
