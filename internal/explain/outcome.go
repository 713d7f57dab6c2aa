package explain

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Outcomes sums up the outcomes of policies over the paths that they are on.
type Outcomes struct {
	tallies map[*merge.Policy]*tally
	unread  map[*policykind.Policy]*effective.Unread
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
func (all *Outcomes) Add(e *effective.Effective) {
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
			all.unread = make(map[*policykind.Policy]*effective.Unread)
		}
		if all.unread[p] == nil {
			all.unread[p] = new(effective.Unread)
		}
		all.unread[p].Add(e)
	}
}

func (t *tally) add(e *effective.Effective, o *merge.Outcome) {
	t.paths.Total++
	state := stateOf(e, o)
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
	t.replaces = t.replaces || o.Policy.Empty() && replaces(e, o.Policy)
	by := replacedBy(e, o)
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
	out := api.Outcome{Policy: p.Ref(), Targets: effective.Targets(v, p)}
	t, unread := all.tallies[&p.Policy], all.unread[p]
	switch {
	case t != nil:
		out.State, out.Paths, out.Message = t.state(), t.paths, emptyMessage(&p.Policy, t.replaces)
		if out.State == api.Unreached {
			out.Message = "no request reaches its paths: " + t.taken.Taker(nil)
		}
	case unread != nil:
		out.State = unread.State()
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
	return cmp.Or(strings.Compare(a.rule, b.rule), api.CompareRefs(a.to, b.to), api.CompareRefs(a.inForce, b.inForce), strings.Compare(strconv.FormatBool(a.equal), strconv.FormatBool(b.equal)))
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
		why, _ := effective.NoPath(v, p, targets[i])
		return api.NoPath, why
	}
	if len(targets) == 0 {
		return api.NoPath, effective.NoTarget(p.Kind)
	}
	for _, state := range []api.State{api.TargetNotFound, api.Conflicted} {
		i := slices.IndexFunc(targets, func(t api.Target) bool { return t.Reason == state })
		if i >= 0 {
			return state, effective.Describe(v, p, targets[i])
		}
	}
	return api.NoPath, ""
}
