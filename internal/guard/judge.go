package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/schema"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// judge is one judgement in the making.
type judge struct {
	*Guard
	change        Change
	before, after *snapshot.View
	// policy is the policy being written, old the same before; nil otherwise.
	policy, old *policykind.Policy
	observe     func(effective.Pair)
	budget      *effective.Budget
	// orphaned tells that the object is judged as if it were deleted with its
	// new owner.
	orphaned bool
	// system tells why it is the system that deletes the object, "" if it is
	// not known to be; asked, that this was found out.
	system string
	asked  bool
	cut    bool // the paths were too much to look at all

	found      findings
	own        tally // of losses of the policy being written
	others     tally // of losses that the write brings to other policies
	ownPaths   int   // that the policy being written is on
	onPaths    bool  // some path was judged
	paths      paths // that change
	namespaces names // likewise
	blasts     map[api.PolicyKind]*blast
	lastBlast  *blast

	pairs         int32 // that were judged
	held          []effective.Override
	lostOverrides map[lostOverride]*overrideTally
	loosened      map[api.PolicyKind]string      // how kinds protect overrides less after the write
	causes        map[*merge.Rule]api.ReasonCode // of losses
	departing     departing
	rightful      findings // of overrides that are weakened, by right
	like          like     // the pair before
	surroundings  map[surroundingKey]*surrounding
	binding       binding
	misfits       map[misfitKey]*misfit
	conformed     map[*merge.Result]*schema.Verdict // of conformAbove
	needs         needs
}

// pair judges one path.
func (j *judge) pair(p effective.Pair) error {
	j.onPaths = true
	b := j.bind(p)
	again := b.none() && j.like.same(p)
	if !again {
		j.like = likeOf(p, j.like.lost[:0])
	}
	if j.like.changed {
		j.count(p)
	}
	if err := j.overrides(p, b, again); err != nil {
		return err
	}
	if !b.none() {
		j.like = like{lost: j.like.lost} // what is bound differs from path to path
		j.bound(p, b)
	}
	if p.After == nil || p.Again {
		return nil
	}
	if err := j.standing(p); err != nil {
		return err
	}
	for i := range p.After.Outcomes {
		o := &p.After.Outcomes[i]
		if j.policy != nil && o.Policy == &j.policy.Policy {
			j.ownPaths++
			j.ownLosses(p, i)
			j.unset(p, o)
			continue
		}
		j.otherLosses(p, i)
	}
	j.objectLosses(p)
	j.notes(p)
	return nil
}

// standing judges what is in force after the write, whoever brought it about.
func (j *judge) standing(p effective.Pair) error {
	j.weakened(p)
	j.hidden(p)
	if err := j.conforms(p); err != nil {
		return err
	}
	return j.requirements(p)
}

// objectLosses books the fields of the route itself that an override newly
// takes, or takes again after they were edited.
func (j *judge) objectLosses(p effective.Pair) {
	own := p.After.Own()
	if own == nil {
		return
	}
	for _, l := range own.Lost {
		if l.To.Block == merge.Overrides && !lostBefore(p.Before, l) {
			j.others.add(p.After, own, l, false, false)
		}
	}
}

// lostBefore reports whether the route's own fields lost the same value before.
func lostBefore(before *effective.Effective, l merge.Lost) bool {
	if before == nil || before.Own() == nil {
		return false
	}
	return slices.ContainsFunc(before.Own().Lost, func(was merge.Lost) bool {
		return was.Key == l.Key && was.To.Block == merge.Overrides && merge.Equal(was.Value, l.Value)
	})
}

func (j *judge) count(p effective.Pair) {
	j.paths.add(&p, j.policyWritten())
	j.namespaces.add(p.Effective().Path.Namespace())
	j.blastOf(p).add(p, j.like.lostGroups, j.change.Object().Ref())
	if j.observe != nil {
		j.observe(p)
	}
}

// policyWritten reports whether it is a policy that is written: only effective
// policies of its own kind can change then.
func (j *judge) policyWritten() bool {
	_, ok := j.change.Object().(*policykind.Policy)
	return ok
}

// ownLosses books the rules of the policy being written, the i-th on the path,
// that a higher override takes.
func (j *judge) ownLosses(p effective.Pair, i int) {
	o := &p.After.Outcomes[i]
	if len(o.Lost) == 0 {
		return
	}
	was, whole := before(p, o.Policy), o.ReplacedBy() != nil
	for _, l := range o.Lost {
		if taken(p.After, i, l) {
			old := lost(p.Before, was, l.Key)
			j.own.add(p.After, o, l, whole && !l.To.Conditional, l.To.Conditional && old != nil && sameBlock(old.To, l.To))
		}
	}
}

// sameBlock reports whether one override took a rule before and after.
func sameBlock(before, after merge.Origin) bool {
	return before.Conditional == after.Conditional &&
		before.Policy.Namespace == after.Policy.Namespace && before.Policy.Name == after.Policy.Name
}

// otherLosses books the rules of another policy that a higher override newly
// takes. What had no effect before has none to lose.
func (j *judge) otherLosses(p effective.Pair, i int) {
	if p.Before != nil && p.Before.Result == p.After.Result {
		return
	}
	o := &p.After.Outcomes[i]
	if len(o.Lost) == 0 {
		return
	}
	was, whole := before(p, o.Policy), o.ReplacedBy() != nil
	for _, l := range o.Lost {
		if taken(p.After, i, l) && (was < 0 || inForce(&p.Before.Outcomes[was], l.Key)) {
			j.others.add(p.After, o, l, whole, false)
		}
	}
}

// taken reports whether an override of a higher policy took a rule of the i-th
// policy. That a lower policy's rule beats a default is nothing to tell, in
// whichever block it stands.
func taken(e *effective.Effective, i int, l merge.Lost) bool {
	if l.To.Block != merge.Overrides {
		return false
	}
	for k := range i {
		if e.Outcomes[k].Policy == l.To.Policy {
			return true
		}
	}
	return false
}

// before returns the place among the policies of the path before the change
// that a policy had there, or -1.
func before(p effective.Pair, policy *merge.Policy) int {
	if p.Before == nil {
		return -1
	}
	return slices.IndexFunc(p.Before.Outcomes, func(o merge.Outcome) bool {
		return o.Policy.Namespace == policy.Namespace && o.Policy.Name == policy.Name
	})
}

// inForce reports whether a rule of the policy took part and was not lost.
func inForce(o *merge.Outcome, k merge.Key) bool {
	if o.LostAt(k) != nil {
		return false
	}
	return slices.ContainsFunc(o.Policy.Blocks, func(b merge.Rules) bool { return b.At(k) != nil && o.BlockApplied(b.Block) })
}

// lost returns how a higher override took a rule of the i-th policy, or nil.
func lost(e *effective.Effective, i int, k merge.Key) *merge.Lost {
	if i < 0 {
		return nil
	}
	l := e.Outcomes[i].LostAt(k)
	if l == nil || !taken(e, i, *l) {
		return nil
	}
	return l
}

// unset finds rules that the policy being written newly unsets although an
// override of a higher policy sets them.
func (j *judge) unset(p effective.Pair, o *merge.Outcome) {
	if len(o.Policy.Unset) == 0 {
		return
	}
	var was map[unsetRule]bool
	if j.old != nil && p.Before != nil {
		was = unsetRules(p.Before, &j.old.Policy)
	}
	for u := range unsetRules(p.After, o.Policy) {
		action := api.Deny
		if was[u] {
			action = api.Warn
		}
		by := u.by
		j.report(api.ReasonUnsetOverride, action, Finding{
			Rule: u.rule, Policy: &by,
			What:   fmt.Sprintf("unset %s has no effect: the overrides of %s set it", u.rule, by),
			Advice: fmt.Sprintf("take it out of the list, or ask the owner of %s", by.Key()),
		})
	}
}

type unsetRule struct {
	rule string
	by   api.Ref
}

// unsetRules returns the rules that p unsets and an override above it sets,
// on a path that p is on.
func unsetRules(e *effective.Effective, p *merge.Policy) map[unsetRule]bool {
	out := make(map[unsetRule]bool)
	unset := merge.NewNames(p.Unset)
	own := slices.IndexFunc(e.Outcomes, func(o merge.Outcome) bool { return o.Policy == p })
	for i := range max(own, 0) { // those behind it are lower
		q := &e.Outcomes[i]
		for _, b := range q.Policy.Blocks {
			if q.AppliedAs(b.Block, merge.Overrides) {
				addUnset(out, e.Ref(q.Policy), unset, b.Rules)
			}
		}
	}
	return out
}

func addUnset(out map[unsetRule]bool, by api.Ref, names merge.Names, rules []merge.Rule) {
	for _, r := range rules {
		if names.Match(r.Key) {
			out[unsetRule{r.Key.String(), by}] = true
		}
	}
}
