package guard

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// overrides books the overrides that hold on a path and would not any more.
//
// An override holds as long as its policy gives it on the path: the same value
// under the same condition, or under none. What beats it then is a higher
// override, which is how the hierarchy works. That its condition is not met is
// no loss either: the lower policies comply.
func (j *judge) overrides(p effective.Pair) error {
	if p.Before == nil || p.After != nil && p.Before.Result == p.After.Result && !j.mayMove(p) {
		return nil
	}
	j.pairs++
	j.held = p.Before.AppendHeld(j.held[:0])
	for _, o := range j.held {
		if p.After != nil && !p.After.Gives(o) {
			j.lose(o, p.Before, p.After)
			continue
		}
		heirs, err := j.heirs(p, o)
		if err != nil {
			return err
		}
		for _, heir := range heirs {
			if !heir.Gives(o) {
				j.lose(o, p.Before, heir)
			}
		}
	}
	return nil
}

// lose books the loss of an override that held on a path; it is not given on
// one that the traffic takes now.
func (j *judge) lose(o effective.Override, was, is *effective.Effective) {
	standIns := j.staying(was.Kind.Ref(), is.StandIns(o))
	if t := j.lastLost; len(standIns) == 0 && t != nil && t.lost == o.Rule && t.was.Kind == was.Kind {
		t.book(j.pairs) // as the path before
		return
	}
	l := lostOverride{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: j.causeOf(was, o)}
	for _, p := range standIns {
		l.standIns += was.Ref(p).Key() + " "
	}
	if j.lostOverrides == nil {
		j.lostOverrides = make(map[lostOverride]*overrideTally)
	}
	t := j.lostOverrides[l]
	if t == nil {
		t = &overrideTally{lostOverride: l, was: was, is: is, standIns: standIns}
		j.lostOverrides[l] = t
	}
	t.book(j.pairs)
	if t.lost = o.Rule; len(standIns) == 0 {
		j.lastLost = t
	}
}

// book books a path, by the number of its pair.
func (t *overrideTally) book(pair int32) {
	if n := len(t.paths); n == 0 || t.paths[n-1] != pair {
		t.paths = append(t.paths, pair)
	}
}

// lostOverride is what losses of overrides are told apart by.
type lostOverride struct {
	kind     api.PolicyKind
	policy   *merge.Policy
	rule     string
	code     api.ReasonCode
	standIns string // their names
}

// overrideTally adds up losses; the first path stands for all.
type overrideTally struct {
	lostOverride
	lost     *merge.Rule // the last one
	was, is  *effective.Effective
	standIns []*merge.Policy
	paths    []int32 // each once, by the number of its pair
	mine     bool    // the writer may
}

// causeOf tells an override that its own policy gives up from one that is lost
// because something else is changed, its policy's target included.
func (j *judge) causeOf(was *effective.Effective, o effective.Override) api.ReasonCode {
	switch {
	case j.orphaned:
		return api.ReasonOverrideEvaded
	case j.old == nil || j.old.Ref() != was.Ref(o.Policy):
		return api.ReasonOverrideEvaded
	case j.policy != nil && j.policy.Invalid == nil && written(&j.policy.Policy, o):
		return api.ReasonOverrideEvaded
	default:
		return api.ReasonOverrideRemoved
	}
}

// written reports whether a policy has a rule as an override of it has it,
// wherever it is attached. How a bare block is read is not for the policy to
// say where its override is one.
func written(p *merge.Policy, o effective.Override) bool {
	return slices.ContainsFunc(p.Blocks, func(b merge.Rules) bool {
		when := ""
		if b.When != nil {
			when = b.When.String()
		}
		bare := b.Block == merge.Bare && o.Block == merge.Bare
		r := b.At(o.Key)
		return (bare || b.Block == merge.Overrides && (b.Strategy == merge.Atomic || !o.Atomic)) && (when == "" || when == o.When) &&
			r != nil && r.Hollow == o.Hollow && merge.Equal(r.Value, o.Value)
	})
}
