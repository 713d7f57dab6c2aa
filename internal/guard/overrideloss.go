package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// lostOverride is what losses of overrides are told apart by.
type lostOverride struct {
	kind     api.PolicyKind
	policy   *merge.Policy
	rule     string
	code     api.ReasonCode
	standIns string // their names
	unbound  string // why it is not bound any more, "" where that is not why
	loosened string // in what respects it is less protected, "" where it is lost
}

// overrideTally adds up losses; the first path stands for all.
type overrideTally struct {
	lostOverride
	was, is  *effective.Effective
	standIns []*merge.Policy
	paths    []int32 // each once, by the number of its pair
	mine     bool    // the writer may
	version  string  // by which the policies would have to be written, "" for none
}

// book books a path, by the number of its pair.
func (t *overrideTally) book(pair int32) {
	if n := len(t.paths); n == 0 || t.paths[n-1] != pair {
		t.paths = append(t.paths, pair)
	}
}

func (t *overrideTally) ref(p *merge.Policy) api.Ref {
	return api.Ref{Group: t.kind.Group, Kind: t.kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// lose books the loss of an override that held on a path; it is not given on
// one that the traffic takes now. It returns where it is booked.
func (j *judge) lose(o effective.Override, was, is *effective.Effective) *overrideTally {
	standIns := j.staying(o, was, is, is.Substitutes(o))
	l := lostOverride{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: j.causeOf(was, o)}
	for _, p := range standIns {
		l.standIns += was.Ref(p).Key() + " "
	}
	return j.tally(overrideTally{lostOverride: l, was: was, is: is, standIns: standIns})
}

// loosen books an override that is given on a path as before, and is less
// protected from now on: a user who is not allowed to remove it must not prepare that, either.
func (j *judge) loosen(o effective.Override, was *effective.Effective, how string) *overrideTally {
	l := lostOverride{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideRemoved, loosened: how}
	return j.tally(overrideTally{lostOverride: l, was: was})
}

// tally books the path of a loss, and returns where it is booked.
func (j *judge) tally(loss overrideTally) *overrideTally {
	if j.lostOverrides == nil {
		j.lostOverrides = make(map[lostOverride]*overrideTally)
	}
	t := j.lostOverrides[loss.lostOverride]
	if t == nil {
		t = &loss
		j.lostOverrides[loss.lostOverride] = t
	}
	t.book(j.pairs)
	return t
}

// unbind books the loss of an override that is given on a path, and not bound to
// its rule any more.
func (j *judge) unbind(o effective.Override, was, is *effective.Effective, why string) {
	l := lostOverride{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideEvaded, unbound: why}
	if !j.orphaned && j.old != nil && j.old.Ref() == was.Ref(o.Policy) {
		l.code = api.ReasonOverrideRemoved
	}
	j.tally(overrideTally{lostOverride: l, was: was, is: is})
}

// causeOf tells an override that its own policy gives up from one that is lost
// because something else is changed, its policy's target included. It is the same
// on every path.
func (j *judge) causeOf(was *effective.Effective, o effective.Override) api.ReasonCode {
	code, known := j.causes[o.Rule]
	if !known {
		if j.causes == nil {
			j.causes = make(map[*merge.Rule]api.ReasonCode)
		}
		code = j.findCause(was, o)
		j.causes[o.Rule] = code
	}
	return code
}

func (j *judge) findCause(was *effective.Effective, o effective.Override) api.ReasonCode {
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

// overridesLost turns the overrides that would not hold any more into findings:
// for those who may remove them something to be told, for all others a denial.
func (j *judge) overridesLost(may *rights) error {
	findings := make(map[lostOverride]*overrideTally)
	for _, t := range j.lost() {
		mine, err := may.override(t.ref(t.policy))
		if err != nil {
			return err
		}
		covered := false
		if !mine {
			if covered, err = may.standIn(t); err != nil {
				return err
			}
		}
		if covered {
			continue
		}
		t.mine, t.lostOverride.standIns = mine, ""
		if first := findings[t.lostOverride]; first != nil {
			first.paths = slices.Compact(slices.Sorted(slices.Values(slices.Concat(first.paths, t.paths))))
			continue
		}
		findings[t.lostOverride] = t
	}
	for _, t := range findings {
		j.overrideLost(t)
	}
	return j.weakenings(may)
}

// lost returns the losses by policy, rule and reason.
func (j *judge) lost() []*overrideTally {
	out := make([]*overrideTally, 0, len(j.lostOverrides))
	for _, t := range j.lostOverrides {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *overrideTally) int {
		return cmp.Or(
			api.CompareRefs(a.ref(a.policy), b.ref(b.policy)),
			strings.Compare(a.rule, b.rule),
			strings.Compare(string(a.code), string(b.code)),
			strings.Compare(a.lostOverride.standIns, b.lostOverride.standIns),
			strings.Compare(a.unbound, b.unbound),
			strings.Compare(a.loosened, b.loosened),
		)
	})
	return out
}

func (j *judge) overrideLost(t *overrideTally) {
	policy := t.ref(t.policy)
	f := Finding{Rule: t.rule, Policy: &policy}
	on := fmt.Sprintf("on %s", plural(len(t.paths), "path"))
	if len(t.paths) == 1 {
		on = "on " + last(t.was)
	}
	f.Short = fmt.Sprintf("%s of %s would not hold any more %s", t.rule, policy, on)
	switch {
	case t.loosened != "":
		f.What = fmt.Sprintf("the overrides of %s hold %s %s, and this write would protect them less: %s", policy, t.rule, on, t.loosened)
		f.Short = fmt.Sprintf("%s of %s would be less protected %s", t.rule, policy, on)
	case t.code == api.ReasonOverrideRemoved && t.unbound == "":
		f.What = fmt.Sprintf("the overrides of %s hold %s %s, and would not any more", policy, t.rule, on)
	default:
		f.What = fmt.Sprintf("%s would slip from under %s: the overrides of %s hold it %s, and %s", slipping(t), t.rule, policy, on, j.why(t))
	}
	action := api.Deny
	if t.mine {
		action = api.Warn
		f.Advice = youMay
	} else {
		f.Advice = fmt.Sprintf("ask the owner of %s, or see whether you may: %s", policy.Key(), j.check(policy))
	}
	j.reportOf(t.was.Kind, t.code, action, f)
}

// slipping names what an override holds no more.
func slipping(t *overrideTally) string {
	if len(t.paths) > 1 {
		return plural(len(t.paths), "path")
	}
	if t.was.Path.Route != nil {
		return t.was.Path.Route.Ref().String()
	}
	return last(t.was)
}

// why says what takes an override out of force.
func (j *judge) why(t *overrideTally) string {
	object := j.change.Object().Ref()
	switch {
	case t.unbound == unmatched && t.is.Path.Rule != t.was.Path.Rule:
		return fmt.Sprintf("%s %s, which may take its requests now", unmatched, last(t.is))
	case t.unbound == unmatched || t.unbound == apart || t.unbound == gone:
		return t.unbound + " " + last(t.is)
	case t.unbound != "":
		return t.unbound
	case t.version != "":
		return fmt.Sprintf("would not once it is written by version %s, which %s brings or changes", t.version, object)
	case j.change.Owner != "":
		return fmt.Sprintf("%s would be deleted with %s, which is made its owner", object, j.change.Owner)
	case j.change.After == nil:
		return fmt.Sprintf("would not without %s", object)
	case rootless(t.is.Path):
		return j.byUnread(t.is)
	case t.is.Path.Route == nil && t.is.Path.Set != nil && t.is.Path.Gateway.Ref() != t.was.Path.Gateway.Ref():
		return fmt.Sprintf("not on %s", t.is.Path.Gateway.Ref()) // the listener is the same
	case !sameDoor(t.is.Path, t.was.Path):
		return fmt.Sprintf("not on %s", through(t.is))
	case t.is.Path.Rule != t.was.Path.Rule || t.is.Path.ID().Backend != t.was.Path.ID().Backend:
		return fmt.Sprintf("not on %s", last(t.is))
	default:
		return "would not after this write"
	}
}
